"""The commands about sessions, and those that speak to an agent: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from pilothouse.cli.options import (
    AnyNamespace,
    Context,
    Dsn,
    Format,
    Gateway,
    Kubeconfig,
    Output,
    State,
    TokenFile,
    finish,
    source_of,
)
from pilothouse.records.queues import QueueName

session = typer.Typer(
    name="session", help="Show the conversations of agents, and carry them over.", no_args_is_help=True
)

SessionName = Annotated[str, typer.Argument(metavar="SESSION", help="The session's name or id.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to say.")]


@session.command("list")
def list_(
    options: typer.Context,
    output: Output = Format.TEXT,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """List the sessions, the newest first."""
    from pilothouse.cli.sessions import commands

    finish(commands.show_all(source_of(options), namespace, output.value))


@session.command()
def show(
    options: typer.Context,
    name: SessionName,
    output: Output = Format.TEXT,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Show a session: what was said and done, its branches, and what waits."""
    from pilothouse.cli.sessions import commands

    finish(commands.show(source_of(options), name, namespace, output.value))


@session.command()
def export(
    options: typer.Context,
    name: SessionName,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write.", show_default="standard output")
    ] = None,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Write a session as a file: JSON Lines, version 3."""
    from pilothouse.cli.sessions import files

    finish(files.export(source_of(options), name, output, namespace))


@session.command("import")
def import_(
    options: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `session export` wrote; - is standard input.")],
    name: Annotated[str, typer.Option("--name", help="The name of the new session.")],
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Make a session of a file."""
    from pilothouse.cli.sessions import files

    finish(files.import_(source_of(options), file, name, namespace))


def steer(
    options: typer.Context,
    session: SessionName,
    text: Text,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Say something to an agent at work: it hears it before its next answer."""
    _say(options, session, QueueName.STEER, text, namespace)


def follow_up(
    options: typer.Context,
    session: SessionName,
    text: Text,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Say something to an agent at work: it hears it where it would end."""
    _say(options, session, QueueName.FOLLOW_UP, text, namespace)


def next_(
    options: typer.Context,
    session: SessionName,
    text: Text,
    namespace: AnyNamespace = None,
    state: State = None,
    dsn: Dsn = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    token_file: TokenFile = None,
) -> None:
    """Leave a message in a session: its agent hears it before its next prompt."""
    _say(options, session, QueueName.NEXT_TURN, text, namespace)


def _say(options: typer.Context, session: str, queue: QueueName, text: str, namespace: str | None) -> None:
    from pilothouse.cli.sessions import messages

    finish(messages.say(source_of(options), session, queue, text, namespace))
