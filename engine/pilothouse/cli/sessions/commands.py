"""`session list` and `session show`: which sessions there are, and what one holds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pilothouse.agents.session import export_session
from pilothouse.cli.command import complete
from pilothouse.cli.names import name_of
from pilothouse.cli.printing import duration, print_data, print_table, print_text
from pilothouse.cli.reading import Source
from pilothouse.cli.sessions.lines import message_lines, tree_lines
from pilothouse.cli.sessions.reading import id_of
from pilothouse.cli.sessions.view import session_view, summary_view
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import Session, SessionHead
from pilothouse.workflows.commands.pod import WORK

_HEADS = ("SESSION", "RUN", "ENTRIES", "CHANGED", "AT WORK", "WAITING")


def show_all(source: Source, namespace: str | None, output: str) -> int:
    """`pilothouse session list`."""

    async def command() -> int:
        async with source.sessions(namespace) as sessions:
            heads = await sessions.store.sessions(sessions.tenant)
        if output != "text":
            print_data([summary_view(head) for head in heads], output)
        elif not heads:
            print_text(f"no sessions in namespace {sessions.namespace}")
        else:
            print_table(_HEADS, [_row(head, datetime.now(UTC)) for head in heads])
        return 0

    return complete(command)


def show(source: Source, name: str, namespace: str | None, output: str) -> int:
    """`pilothouse session show`."""

    async def command() -> int:
        async with source.sessions(namespace, id_of(name)) as sessions:
            head = await sessions.find(name)
            session = await sessions.whole(head)
            waiting = await sessions.store.queued(sessions.tenant, head.id)
        if output != "text":
            print_data(session_view(head, session, export_session(session, WORK), waiting), output)
        else:
            _print(head, session, waiting)
        return 0

    return complete(command)


def _row(head: SessionHead, now: datetime) -> Sequence[str]:
    run = name_of(head.run) if head.run else ""
    changed, at_work = duration(now - head.changed_at), "yes" if head.holder else ""
    return (head.name or str(head.id), run, str(head.entries), changed, at_work, _counts(head.waiting))


def _counts(waiting: Mapping[QueueName, int]) -> str:
    return ", ".join(f"{waiting[queue]} {queue.value}" for queue in QueueName if queue in waiting)


def _print(head: SessionHead, session: Session, waiting: Sequence[QueueItem]) -> None:
    print_text(f"Session:  {head.name or head.id}\nId:       {head.id}")
    if head.run:
        print_text(f"Run:      {name_of(head.run)}{', at work' if head.holder else ''}")
    print_text(f"Entries:  {len(session.entries)}\nChanged:  {head.changed_at.isoformat(timespec='seconds')}\n")
    for line in tree_lines(session):
        print_text(line)
    if waiting:
        print_text("\nWaiting:")
    for item in waiting:
        first, *_ = [*message_lines(item.message), ""]
        print_text(f"  {item.queue.value}  {item.id}  {first}")
