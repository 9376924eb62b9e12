"""The command line: `python -m e2e.cluster`."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from e2e.cluster import binaries, clusters, engine, guard, image
from e2e.cluster.clients import environment
from e2e.cluster.commands import say
from e2e.cluster.components import Options, names
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import DEFAULT_NAME, NAME_VARIABLE, Layout
from e2e.cluster.state import State

Arguments = argparse.Namespace


def main(words: list[str]) -> int:
    """Runs one command and returns its exit code; a ClusterError is told in one message."""
    arguments = _parser().parse_args(words)
    try:
        layout = Layout.of(arguments.name)
        command: Callable[[Layout, Arguments], int | None] = arguments.command
        return command(layout, arguments) or 0
    except ClusterError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m e2e.cluster", description="A one-node Kubernetes cluster for tests.")
    default = os.environ.get(NAME_VARIABLE, DEFAULT_NAME)
    parser.add_argument("--name", default=default, help=f"one of several clusters (default {default}; {NAME_VARIABLE})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[Layout, Arguments], int | None], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(command=command)
        return added

    policy = ("--mutating-admission-policy",)
    add("up", _up, "make the cluster, or what is missing of it").add_argument(*policy, action="store_true")
    add("down", _down, "remove the cluster")
    add("status", _status, "tell what runs")
    add("kubeconfig", _kubeconfig, "print the kubeconfig's path")
    add("image", _image, "build the image, and take it onto the node if there is a cluster")
    for name, text in _DISTURBANCES.items():
        add(name, _disturb(name), text).add_argument("component", choices=names())
    within = add("with", _with, "make the cluster and the image, run a command with them, remove what was made")
    within.add_argument("--keep", action="store_true", help="leave the cluster running")
    within.add_argument("words", nargs="+", metavar="COMMAND")
    return parser


_DISTURBANCES = {
    "start": "start a component of the node",
    "stop": "stop a component until it is started",
    "restart": "stop and start a component",
    "kill": "end a component with SIGKILL, as a crash would",
}


def _up(layout: Layout, arguments: Arguments) -> None:
    clusters.of(layout).up(Options(arguments.mutating_admission_policy))
    say("it is there; with these lines your shell finds it, kubectl and helm:")
    print(f'export KUBECONFIG={layout.kubeconfig}\nexport PATH={binaries.folder(layout)}:"$PATH"')


def _down(layout: Layout, _: Arguments) -> None:
    clusters.of(layout).down()


def _status(layout: Layout, _: Arguments) -> int:
    record = State.load(layout)
    if record is None:
        print("no cluster")
        return 1
    print(f"{record.kind} cluster at {record.server}")
    for name, text in clusters.of(layout).status().items():
        print(f"{name:20} {text}")
    return 0


def _kubeconfig(layout: Layout, _: Arguments) -> None:
    guard.require_ours(layout)
    print(layout.kubeconfig)


def _image(layout: Layout, _: Arguments) -> None:
    node = clusters.of(layout) if State.load(layout) else None
    print(image.ensure(layout, engine.find_for_kind(), node))


def _disturb(how: str) -> Callable[[Layout, Arguments], None]:
    def command(layout: Layout, arguments: Arguments) -> None:
        guard.require_ours(layout)
        cluster = clusters.of(layout)
        for step in ("stop", "start") if how == "restart" else (how,):
            getattr(cluster, step)(arguments.component)

    return command


def _with(layout: Layout, arguments: Arguments) -> int:
    keep = arguments.keep or State.load(layout) is not None
    cluster = clusters.of(layout)
    try:
        cluster.up(Options())
        image.ensure(layout, engine.find_for_kind(), cluster)
        return subprocess.run(arguments.words, env=environment(layout), check=False).returncode
    finally:
        if not keep:
            cluster.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
