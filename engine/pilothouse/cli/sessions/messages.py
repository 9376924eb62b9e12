"""`steer`, `follow-up` and `next`: something said to an agent through a queue of its session."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from pilothouse.agents.messages import UserMessage, to_wire
from pilothouse.cli.command import CommandError, complete
from pilothouse.cli.printing import print_text
from pilothouse.cli.reading import Source
from pilothouse.cli.sessions.reading import Sessions, id_of
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.store.errors import InvalidState, NotFound, StoreUnavailable
from pilothouse.store.patient import back_off

TRIES = 5
"""How often a message is sent whose acceptance was not heard of. Under its id it is accepted once."""


def say(source: Source, session: str, queue: QueueName, text: str, namespace: str | None) -> int:
    """`pilothouse steer`, `follow-up` and `next`."""

    async def command() -> int:
        if not text.strip():
            raise CommandError("TEXT is empty; an agent needs something to hear")
        async with source.sessions(namespace, id_of(session)) as sessions:
            item = await _accepted(sessions, session, queue, to_wire(UserMessage.of(text)))
        print_text(f"accepted in {item.queue.value}: {item.id}")
        return 0

    return complete(command)


async def _accepted(sessions: Sessions, name: str, queue: QueueName, message: Mapping[str, Any]) -> QueueItem:
    try:
        return await _sent(sessions, name, queue, message)
    except NotFound:
        raise sessions.missing(name) from None
    except InvalidState:
        raise CommandError(
            f"no agent is at work on session `{name}`, so nobody would read this; "
            "`pilothouse next` leaves it there for the next prompt"
        ) from None
    except StoreUnavailable as error:
        shown = f"`pilothouse session show` of `{name}` lists what waits"
        raise CommandError(f"whether the message was accepted is not known: {error}; {shown}") from None


async def _sent(sessions: Sessions, name: str, queue: QueueName, message: Mapping[str, Any]) -> QueueItem:
    session, id = sessions.id(name), uuid4()
    for tries in range(1, TRIES):
        try:
            return await sessions.store.enqueue(sessions.tenant, session, queue, message, id)
        except StoreUnavailable:
            await back_off(tries)
    return await sessions.store.enqueue(sessions.tenant, session, queue, message, id)
