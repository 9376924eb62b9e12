"""Least privilege: rights that no account may have, whatever the checked-in table says."""

from e2e.chart.access import Row, rows
from e2e.chart.rendering import Render

VARIANTS = ((), ("namespaces.served={team-a,team-b}",), ("check.enabled=false",))

POWERS = {"escalate", "bind", "impersonate", "approve", "*"}
FORBIDDEN_GROUPS = {"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "approval.pilothouse.dev", "*"}
FORBIDDEN_RESOURCES = {"secrets", "serviceaccounts/token", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "*"}


def accounts(*values: str) -> list[Row]:
    return [row for row in rows(Render.of(*values)) if not row.account.startswith("(")]


def test_no_account_has_a_power_over_rights_secrets_or_running_containers() -> None:
    for values in VARIANTS:
        for row in rows(Render.of(*values)):
            assert not POWERS & set(row.verbs.split(",")), row
            assert row.group not in FORBIDDEN_GROUPS, row
            assert row.resource not in FORBIDDEN_RESOURCES, row


def test_the_operator_has_rights_in_served_namespaces_alone() -> None:
    found = {row.scope for row in accounts("namespaces.served={team-a,team-b}") if row.account == "pilothouse-operator"}
    assert found == {"pilothouse", "team-a", "team-b"}
    in_own = [row for row in accounts("namespaces.served={team-a}") if row.scope == "pilothouse"]
    assert {row.resource for row in in_own if row.account == "pilothouse-operator"} == {"configmaps"}


def test_a_served_namespace_gives_the_rights_that_the_cluster_would() -> None:
    def rights(scope: str, *values: str) -> set[Row]:
        return {row._replace(scope="") for row in accounts(*values) if row.scope == scope and "operator" in row.account}

    assert rights("cluster") == rights("team-a", "namespaces.served={team-a}")


def test_the_gateway_asks_and_reads_nothing_but_which_namespaces_are_there() -> None:
    found = {(row.resource, row.verbs) for row in accounts() if row.account == "pilothouse-gateway"}
    assert found == {("tokenreviews", "create"), ("subjectaccessreviews", "create"), ("namespaces", "get")}


def test_jobs_touch_named_objects_of_their_own_namespace() -> None:
    for row in accounts():
        if row.account in ("pilothouse-migrate", "pilothouse-check"):
            assert row.scope == "pilothouse"
            assert row.names != "-"


def test_callers_of_the_gateway_are_bound_only_where_named() -> None:
    everybody = ("gateway.callers[0].kind=Group", "gateway.callers[0].name=system:authenticated")
    assert "system:authenticated" not in {row.account for row in rows(Render.of())}
    [row] = [row for row in rows(Render.of(*everybody)) if row.account == "system:authenticated"]
    assert row == Row(
        "system:authenticated", "pilothouse", "-", "services/proxy", "https:pilothouse-gateway:https", "create,get"
    )


def test_rights_and_accounts_can_be_left_to_somebody_else() -> None:
    render = Render.of("rbac.create=false", "rbac.userRoles.create=false", "serviceAccounts.create=false")
    assert not render.kind("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount")


def test_the_roles_of_people_join_the_clusters_own_unless_told_not_to() -> None:
    def labels(*values: str) -> set[str]:
        named = Render.of(*values)
        found = (
            named.one("ClusterRole", f"pilothouse-{name}")["metadata"]["labels"] for name in ("viewer", "submitter")
        )
        return {label for each in found for label in each if "aggregate-to" in label}

    group = "rbac.authorization.k8s.io"
    assert labels() == {f"{group}/aggregate-to-view", f"{group}/aggregate-to-edit"}
    assert not labels("rbac.userRoles.aggregate=false")
