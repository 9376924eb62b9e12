"""Who may do what: the rows of the RBAC objects of a render."""

from collections.abc import Iterator
from typing import NamedTuple

from e2e.chart.rendering import Object, Render


class Row(NamedTuple):
    """One resource that one account may touch. `scope` is a namespace, or `cluster`."""

    account: str
    scope: str
    group: str
    resource: str
    names: str
    verbs: str


def rows(render: Render) -> list[Row]:
    """All that the render grants, sorted; also roles that nobody is bound to."""
    return sorted({row for account, scope, role in _grants(render) for row in _of(account, scope, role)})


def table(render: Render) -> str:
    """The rows as text, one a line, in columns."""
    lines = [Row("ACCOUNT", "SCOPE", "GROUP", "RESOURCE", "NAMES", "VERBS"), *rows(render)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{text.rstrip()}\n" for text in texts)


def _grants(render: Render) -> Iterator[tuple[str, str, Object]]:
    roles = {_key(each): each for each in render.kind("Role", "ClusterRole")}
    unbound = set(roles)
    for binding in render.kind("RoleBinding", "ClusterRoleBinding"):
        scope = binding["metadata"].get("namespace", "cluster")
        reference = binding["roleRef"]
        key = (reference["kind"], scope if reference["kind"] == "Role" else "", reference["name"])
        unbound.discard(key)
        for subject in binding["subjects"]:
            yield subject["name"], scope, roles[key]
    for key in unbound:
        yield f"({key[2]})", key[1] or "where bound", roles[key]


def _key(role: Object) -> tuple[str, str, str]:
    return role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]


def _of(account: str, scope: str, role: Object) -> Iterator[Row]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                names = ",".join(sorted(rule.get("resourceNames", []))) or "-"
                yield Row(account, scope, group or "-", resource, names, ",".join(sorted(rule["verbs"])))
