"""Questions to the read API of a gateway, and what its answers mean."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar

from pilothouse.cli.access import Access, Answer
from pilothouse.cli.command import CommandError
from pilothouse.records.runs import Attempt, Run
from pilothouse.records.values import ValueRefused, digest
from pilothouse.store.errors import Conflict, NotFound, StoreUnavailable, StoreUnusable
from pilothouse.store.remote.problems import error_of
from pilothouse.store.remote.wire import Text

T = TypeVar("T")


class Questions:
    """Each raises NotFound, StoreUnavailable in an outage, and CommandError or StoreUnusable where asking again does
    not help."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def ask(self, path: str, read: Callable[[Any], T], query: Mapping[str, str] | None = None) -> T:
        """What `read` makes of the answer's JSON."""
        return _meaning(await self._get(path, query or {}), read)

    async def tell(self, path: str, body: Text, read: Callable[[Any], T], query: Mapping[str, str]) -> T:
        """As `ask`, of a write. Raises also what the store refuses."""
        return _meaning(await self._answer(self._access.post(path, query, body.encode())), read)

    async def pages(self, path: str, read: Callable[[Any], T], after: int = 0) -> AsyncIterator[T]:
        """Every item of a list from the one after `after` items on."""
        more = True
        while more:
            page, more = await self.ask(path, partial(_page, read), {"after": str(after)})
            for item in page:
                yield item
            after += len(page)

    async def blob(self, path: str, expected: str) -> bytes:
        """The bytes, which have the expected digest."""
        body = (await self._get(path, {})).body
        if digest(body) != expected:
            raise StoreUnavailable("what was kept arrived damaged or cut short; try again")
        return body

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        """As of Access."""
        return await self._access.output(run, attempt)

    async def _get(self, path: str, query: Mapping[str, str]) -> Answer:
        return await self._answer(self._access.get(path, query))

    async def _answer(self, asking: Awaitable[Answer]) -> Answer:
        answer = await asking
        if answer.status != 200:
            _refused(answer)
        return answer


def _meaning(answer: Answer, read: Callable[[Any], T]) -> T:
    try:
        return read(json.loads(answer.body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreUnusable("the answer is none that this version understands: is it a gateway, and as new?") from None


def _page(read: Callable[[Any], T], body: Any) -> tuple[list[T], bool]:
    items = [read(item) for item in body["items"]]
    return items, bool(items and body["more"])


def _refused(answer: Answer) -> NoReturn:
    """Raises what the gateway's refusal means."""
    body = json.loads(answer.body)
    kind, message = str(body["type"]), str(body["message"])
    if isinstance(error := error_of(answer.status, body), NotFound | Conflict | ValueRefused):
        raise error
    if kind == "Unauthenticated":
        raise CommandError(_UNKNOWN)
    if kind == "NoSuchRoute":
        raise CommandError("the gateway is of another version, or serves no runs: it does not know what was asked")
    if answer.status >= 500:
        raise StoreUnavailable(f"the gateway cannot serve now: {message}")
    raise CommandError(message)


_UNKNOWN = (
    "the gateway does not accept the token: it has expired, or the cluster does not know it; sign in again, or name "
    "another with --token-file"
)
