"""Questions to the read API of a gateway, and what its answers mean."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar

from pilothouse.cli.access import Access, Answer
from pilothouse.cli.command import CommandError
from pilothouse.records.runs import Attempt, Run
from pilothouse.records.values import digest
from pilothouse.store.errors import NotFound, StoreUnavailable, StoreUnusable

T = TypeVar("T")


class Questions:
    """Each raises NotFound, StoreUnavailable in an outage, and CommandError or StoreUnusable where asking again does
    not help."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def ask(self, path: str, read: Callable[[Any], T], query: Mapping[str, str] | None = None) -> T:
        """What `read` makes of the answer's JSON."""
        answer = await self._get(path, query or {})
        try:
            return read(json.loads(answer.body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StoreUnusable(
                "the answer is none that this version understands: is it a gateway, and as new?"
            ) from None

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
        answer = await self._access.get(path, query)
        if answer.status != 200:
            _refused(answer)
        return answer


def _page(read: Callable[[Any], T], body: Any) -> tuple[list[T], bool]:
    items = [read(item) for item in body["items"]]
    return items, bool(items and body["more"])


def _refused(answer: Answer) -> NoReturn:
    """Raises what the gateway's refusal means."""
    body = json.loads(answer.body)
    kind, message = str(body["type"]), str(body["message"])
    if kind == NotFound.__name__:
        raise NotFound(message)
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
