"""The commands, their options and their help. What they do is imported only when they are called."""

from pathlib import Path
from typing import Annotated

import typer

from pilothouse import __version__
from pilothouse.cli import talk
from pilothouse.cli.options import (
    AnyNamespace,
    Context,
    Dsn,
    Files,
    Follow,
    Format,
    Gateway,
    Kubeconfig,
    MaybeRun,
    Namespace,
    Output,
    RunName,
    State,
    TokenFile,
    finish,
    source_of,
)
from pilothouse.records.states import Shutdown

app = typer.Typer(
    name="pilothouse",
    help="Run durable, governed AI agents and workflows: here with `run`, on a cluster with `kubectl apply`.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
    finish(command.start(Where.of(state, dsn), request, output.value))


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

    finish(command.resume(Where.of(state, dsn), run, tuple(filename or ()), namespace, output.value))


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

    finish(command.cancel(Where.of(state, dsn), run, verb, namespace))


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

    finish(command.chat(Where.of(state, dsn), command.Request(agent, tuple(filename), session, namespace)))


@app.command()
def validate(filename: Files) -> None:
    """Check files without running anything."""
    from pilothouse.cli import run as command

    finish(command.check(tuple(filename)))


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

    finish(command.get(source_of(options), run, namespace, output.value))


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

    finish(command.describe(source_of(options), run, namespace))


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

    finish(command.logs(source_of(options), run, step, follow, namespace))


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

    finish(command.events(source_of(options), run, follow, namespace, output.value))


app.add_typer(talk.session)
app.command()(talk.steer)
app.command()(talk.follow_up)
app.command("next")(talk.next_)


@app.command()
def migrate(state: State = None, dsn: Dsn = None) -> None:
    """Bring the database to this version's schema."""
    from pilothouse.cli import migrate as command
    from pilothouse.cli.where import Where

    finish(command.migrate(Where.of(state, dsn)))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"pilothouse {__version__}")


def main() -> None:
    """The entry point of the `pilothouse` command."""
    app(prog_name="pilothouse")
