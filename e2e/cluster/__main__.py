"""The command line: `python -m e2e.cluster`."""

import argparse
import sys

from e2e.cluster.components import Options
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import DEFAULT_NAME, Layout
from e2e.cluster.native import NativeCluster


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default=DEFAULT_NAME)
    parser.add_argument("verb")
    parser.add_argument("component", nargs="?")
    parser.add_argument("--mutating-admission-policy", action="store_true")
    a = parser.parse_args()
    c = NativeCluster(Layout.of(a.name))
    try:
        match a.verb:
            case "up":
                c.up(Options(a.mutating_admission_policy))
            case "down":
                c.down()
            case "status":
                print(c.status())
            case "start" | "stop" | "kill":
                getattr(c, a.verb)(a.component)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
