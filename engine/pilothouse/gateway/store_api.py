"""The store API for Pods: one route for each method of the AttemptStore, and one that exchanges a Pod's token.

The attempt is the token's: no path and no body names one.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pilothouse.gateway.admission import Admission
from pilothouse.gateway.answers import json_answer
from pilothouse.gateway.bodies import Bodies
from pilothouse.gateway.kubeapi import KubeApi
from pilothouse.gateway.long import blob, paged
from pilothouse.gateway.parsing import read_body
from pilothouse.gateway.room import Room
from pilothouse.gateway.tokens import LIFETIME
from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.queues import QueueName
from pilothouse.records.runs import StepId
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.ports import PagedAttemptStore, RunStore
from pilothouse.store.remote import answers, requests
from pilothouse.store.remote.wire import LIMITS, Fields, Misread

_OWN_EVENTS = frozenset({EventType.TURN_RECORDED, EventType.TOOL_STARTED, EventType.TOOL_FINISHED})
"""What the process of an attempt may tell of; everything else is the driver's to tell."""

_OWN_ENDS = frozenset({AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.CANCELLED, AttemptState.RELEASED})
"""How it may end its attempt: that it never began, or was lost, only the driver can know."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An attempt's own store, its step, and the room for what it is answered."""

    store: PagedAttemptStore
    step: StepId
    room: Room

    def events(self, body: Fields) -> Sequence[NewEvent]:
        """The events of the request. Raises ValueRefused for what is not this attempt's to tell."""
        told = requests.read_events(body)
        if any(event.type not in _OWN_EVENTS or event.step not in (self.step, None) for event in told):
            raise ValueRefused(f"an attempt of `{self.step}` tells of the turns and tools of that step alone")
        return told


Method = Callable[[Caller, bytes], Awaitable[Response]]


def store_routes(store: RunStore, kube: KubeApi, room: Room) -> list[Route]:
    """The routes below /store/v1, all of them POST."""
    admission, bodies = Admission(store, kube), Bodies(room)

    async def token(request: Request) -> Response:
        text, bearer = await admission.admit(request)
        return json_answer(answers.admission_answer(text, LIFETIME / timedelta(seconds=1), bearer.ref))

    def route(name: str, method: Method) -> Route:
        async def endpoint(request: Request) -> Response:
            bearer = await admission.known(request)
            async with bodies.body_of(request, LIMITS[name]) as body:
                return await method(Caller(store.attempt_store(bearer.ref), bearer.step, room), body)

        return Route(f"/{name}", endpoint, methods=["POST"])

    return [Route("/token", token, methods=["POST"]), *(route(name, method) for name, method in _METHODS.items())]


async def _open_session(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    read = partial(caller.store.session_page, body.uuid("session"), name=body.optional("name", body.text))
    return await paged(caller.room, answers.SESSION, read)


async def _append(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    leaf = body.optional("leaf", body.uuid)
    entries, outcomes = requests.read_entries(body), requests.read_outcomes(body)
    consumed = body.optional("consumed", lambda name: body.list_of(name, UUID)) or ()
    written = await caller.store.append(body.uuid("session"), leaf, entries, caller.events(body), outcomes, consumed)
    return json_answer(answers.appended_answer(written))


async def _queued(caller: Caller, data: bytes) -> Response:
    return await paged(caller.room, answers.ITEMS, partial(caller.store.queue_page, read_body(data).uuid("session")))


async def _clear(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    queues = body.list_of("queues", QueueName)
    return await paged(
        caller.room, answers.ITEMS, partial(caller.store.clear_page, body.uuid("session"), queues, body.uuid("id"))
    )


async def _tool_calls(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    read = partial(caller.store.call_page, body.uuid("session"), body.uuid("turn"))
    return await paged(caller.room, answers.CALLS, read)


async def _intend(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    call = requests.read_call(body.fields("call"))
    row = await caller.store.intend(body.uuid("session"), call, caller.events(body))
    return json_answer(answers.intended_answer(row))


async def _record(caller: Caller, data: bytes) -> Response:
    body = read_body(data)
    outcome = requests.read_outcome(body.fields("outcome"))
    result = await caller.store.record(body.uuid("session"), outcome, caller.events(body))
    return json_answer(answers.recorded_answer(result))


async def _put_blob(caller: Caller, data: bytes) -> Response:
    return json_answer(answers.blob_answer(await caller.store.put_blob(data)))


async def _get_blob(caller: Caller, data: bytes) -> Response:
    return await blob(partial(caller.store.blob_piece, read_body(data).text("digest")))


async def _finish(caller: Caller, data: bytes) -> Response:
    state, outputs, failure = requests.read_end(read_body(data))
    if state not in _OWN_ENDS:
        raise Misread(f"`state` must be one of {', '.join(sorted(_OWN_ENDS))}")
    await caller.store.finish(state, outputs, failure)
    return json_answer({})


_METHODS: dict[str, Method] = {
    "open_session": _open_session,
    "append": _append,
    "queued": _queued,
    "clear": _clear,
    "tool_calls": _tool_calls,
    "intend": _intend,
    "record": _record,
    "put_blob": _put_blob,
    "get_blob": _get_blob,
    "finish": _finish,
}
