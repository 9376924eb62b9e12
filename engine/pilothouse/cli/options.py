"""The options that several commands have, and what they mean together."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pilothouse.cli.reading import Source


class Format(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


Files = Annotated[
    list[Path], typer.Option("-f", "--filename", help="A file, a folder of files, or - for standard input.")
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state", envvar="PILOTHOUSE_STATE", help="Where runs are kept.", show_default="the user's data folder"
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option("--dsn", envvar="PILOTHOUSE_DSN", help="A PostgreSQL of your own instead of the embedded one."),
]


def _namespace(name: str | None) -> str | None:
    if name is not None and re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) is None:
        raise typer.BadParameter("a namespace is at most 63 lower-case letters, digits and -")
    return name


Namespace = Annotated[
    str, typer.Option("-n", "--namespace", callback=_namespace, help="The namespace of what names none.")
]
AnyNamespace = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--namespace",
        callback=_namespace,
        help="The namespace to look in.",
        show_default="default; of a cluster, its context's",
    ),
]
Context = Annotated[str | None, typer.Option("--context", help="Read a cluster: this context of the kubeconfig.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Read a cluster: this file's.", show_default="as kubectl finds it"),
]
Gateway = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        metavar="NAMESPACE/SERVICE|URL",
        help="Read a cluster: through this gateway.",
        show_default="pilothouse/pilothouse-gateway",
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option(
        "--token-file", metavar="FILE|-", help="Read a cluster: by this token.", show_default="the context's own"
    ),
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How the result is printed.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="WORKFLOW, WORKFLOW/NUMBER or the run's id.")]
MaybeRun = Annotated[str | None, typer.Argument(metavar="[RUN]", help="WORKFLOW, WORKFLOW/NUMBER or the run's id.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run has ended.")]


def source_of(options: typer.Context) -> "Source":
    """Where the runs are that a command shows: a cluster where an option of one was given, else this machine."""
    given = options.params
    cluster = {name: given[name] for name in ("context", "kubeconfig", "gateway", "token_file")}
    if all(value is None for value in cluster.values()):
        from pilothouse.cli.where import Where

        return Where.of(given["state"], given["dsn"])
    for name in ("state", "dsn"):
        source = options.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--{name} names runs of this machine, and another option a cluster: give one of them"
            )
    from pilothouse.cli.cluster import Cluster

    return Cluster(**cluster)


def finish(code: int) -> None:
    """Ends the command with that status."""
    raise typer.Exit(code)
