"""The checked-in renders: what an install makes by default, and who may do what."""

import re
from pathlib import Path
from typing import Any

import yaml

from e2e.chart.access import table
from e2e.chart.rendering import CHART, Object, Render

DEFAULTS = Path(__file__).parent / "golden" / "defaults.yaml"
ACCESS = CHART / "rbac.txt"

_HEADER = (
    "# What `helm install` makes by default. Written by `python -m e2e.chart`; definitions are told by name alone.\n"
)

_ACCESS_HEADER = """\
# Who may do what, as the chart grants it. Written by `python -m e2e.chart`, and compared with the chart by a test.
# An account is a service account of the release, or in parentheses a role that whoever installs may bind to people.
# `-` stands for the core group, and for objects of any name.
"""

_MIGRATE_DIGEST = re.compile(r"(?<=-migrate-)[0-9a-f]{10}\b")


class _Dumper(yaml.SafeDumper):
    """Repeats what is said twice: an anchor would hide what an object has."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def texts() -> dict[Path, str]:
    """What each checked-in file must hold."""
    everywhere, served = Render.of(), Render.of("namespaces.served={team-a}")
    shown = [_stable(each) for each in everywhere.objects]
    access = (
        f"{_ACCESS_HEADER}\n# namespaces.served: []\n{table(everywhere)}"
        f"\n# namespaces.served: [team-a]\n{table(served)}"
    )
    defaults = _HEADER + yaml.dump_all(shown, Dumper=_Dumper, width=120, explicit_start=True)
    return {path: _MIGRATE_DIGEST.sub("DIGEST", text) for path, text in ((DEFAULTS, defaults), (ACCESS, access))}


def _stable(given: Object) -> Object:
    """The object without what differs in each render, and without the text of a definition, which stands in crds/."""
    if given["kind"] == "CustomResourceDefinition":
        return {**given, "spec": "see crds/"}
    if given["kind"] == "Secret":
        return {**given, "data": dict.fromkeys(given["data"], "made once, then kept")}
    annotations = given.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})
    for name in annotations:
        if name.startswith("checksum/"):
            annotations[name] = "of what is made once"
    return given
