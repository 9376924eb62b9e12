"""The commands, their options and their help. What they do is imported only when they are called."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pilothouse import __version__
from pilothouse.records.states import Shutdown

if TYPE_CHECKING:
    from pilothouse.cli.reading import Source

app = typer.Typer(
    name="pilothouse",
    help="Run durable, governed AI agents and workflows: here with `run`, on a cluster with `kubectl apply`.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        help="The namespace of the runs.",
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


@app.command()
def run(
    filename: Files,
    param: Annotated[list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A param.")] = None,
    workflow: Annotated[str | None, typer.Option(help="Which Workflow, where the files hold several.")] = None,
    namespace: Namespace = "default",
    output: Output = Format.TEXT,
    state: State = None,
    dsn: Dsn = None,
) -> None:
    """Run a Workflow on this machine, to its end."""
    from pilothouse.cli import run as command
    from pilothouse.cli.where import Where

    request = command.Request(tuple(filename), tuple(param or ()), workflow, namespace)
    _exit(command.start(Where.of(state, dsn), request, output.value))


@app.command()
def resume(
    run: MaybeRun = None,
    filename: Annotated[
        list[Path] | None,
        typer.Option("-f", "--filename", help="Take Secrets from here, not from the run's own files."),
    ] = None,
    output: Output = Format.TEXT,
    namespace: Namespace = "default",
    state: State = None,
    dsn: Dsn = None,
) -> None:
    """Go on with a run that was interrupted: the one that is named, else the only one."""
    from pilothouse.cli import run as command
    from pilothouse.cli.where import Where

    _exit(command.resume(Where.of(state, dsn), run, tuple(filename or ()), namespace, output.value))


@app.command()
def cancel(
    run: RunName,
    verb: Annotated[
        Shutdown, typer.Option(help="Stop lets running steps end; Terminate skips exit handlers.")
    ] = Shutdown.CANCEL,
    namespace: Namespace = "default",
    state: State = None,
    dsn: Dsn = None,
) -> None:
    """End a run early."""
    from pilothouse.cli import run as command
    from pilothouse.cli.where import Where

    _exit(command.cancel(Where.of(state, dsn), run, verb, namespace))


@app.command()
def chat(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The Agent's name in the files.")],
    filename: Files,
    session: Annotated[
        str | None,
        typer.Option(help="The name of a conversation to go on with, or to begin.", show_default="a new one"),
    ] = None,
    namespace: Namespace = "default",
    state: State = None,
    dsn: Dsn = None,
) -> None:
    """Talk with an Agent on this machine."""
    from pilothouse.cli.chat import command
    from pilothouse.cli.where import Where

    _exit(command.chat(Where.of(state, dsn), command.Request(agent, tuple(filename), session, namespace)))


@app.command()
def validate(filename: Files) -> None:
    """Check files without running anything."""
    from pilothouse.cli import run as command

    _exit(command.check(tuple(filename)))


@app.command("get")
def get_(
    options: typer.Context,
    run: MaybeRun = None,
    output: Output = Format.TEXT,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """List the runs, or show one."""
    from pilothouse.cli import show as command

    _exit(command.get(_source(options), run, namespace, output.value))


@app.command()
def describe(
    options: typer.Context,
    run: RunName,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Tell all there is to tell of a run: steps, attempts, failures, events."""
    from pilothouse.cli import show as command

    _exit(command.describe(_source(options), run, namespace))


@app.command()
def logs(
    options: typer.Context,
    run: RunName,
    step: Annotated[str | None, typer.Argument(help="Only this step.")] = None,
    follow: Follow = False,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Print what the steps of a run printed, and what its agents said and did."""
    from pilothouse.cli import logs as command

    _exit(command.logs(_source(options), run, step, follow, namespace))


@app.command()
def events(
    options: typer.Context,
    run: RunName,
    follow: Follow = False,
    output: Output = Format.TEXT,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Print the events of a run in order."""
    from pilothouse.cli import show as command

    _exit(command.events(_source(options), run, follow, namespace, output.value))


@app.command()
def migrate(state: State = None, dsn: Dsn = None) -> None:
    """Bring the database to this version's schema."""
    from pilothouse.cli import migrate as command
    from pilothouse.cli.where import Where

    _exit(command.migrate(Where.of(state, dsn)))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"pilothouse {__version__}")


def _source(options: typer.Context) -> "Source":
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


def _exit(code: int) -> None:
    raise typer.Exit(code)


def main() -> None:
    """The entry point of the `pilothouse` command."""
    app(prog_name="pilothouse")
