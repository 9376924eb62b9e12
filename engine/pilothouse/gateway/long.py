"""Answers that may be longer than memory holds: read from the store in parts, each once the one before it has left.

The first part asks for no more than needs no room, so most answers are one part, and nothing has been sent while the
store may still refuse. A row that is larger is read alone, once there is room for it.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from starlette.responses import Response

from pilothouse.gateway.answers import PIECE, Answer, LongAnswer, Parts, pieces
from pilothouse.gateway.room import FREE, Room
from pilothouse.store.pages import Page, Piece
from pilothouse.store.remote.answers import Listing
from pilothouse.store.rows import Row

_JSON, _BYTES = "application/json", "application/octet-stream"


async def paged(room: Room, listing: Listing, read: Callable[[int, int], Awaitable[Page]]) -> Response:
    """All rows, which `read` gives after one and up to a size."""
    first = await read(listing.start, FREE)
    if first.next:
        return LongAnswer(_pages(room, listing, read, first), _JSON)
    texts = [listing.head, *_texts(listing, first.rows), listing.end(first)]
    return Answer("".join(texts).encode(), _JSON)


async def _pages(room: Room, listing: Listing, read: Callable[[int, int], Awaitable[Page]], page: Page | None) -> Parts:
    yield pieces([listing.head])
    after, size, separator, end = listing.start, 0, "", ""
    while page is not None or size:
        async with room.held(size):
            page = page or await read(after, max(size, FREE))
            if page.rows:
                yield pieces(_texts(listing, page.rows, separator))
                after, separator = page.rows[-1][listing.column], ","
            size, end = page.next, listing.end(page)
            page = None  # it is held no longer than its room
    yield pieces([end])


def _texts(listing: Listing, rows: Sequence[Row], separator: str = "") -> Iterator[str]:
    for row in rows:
        yield separator
        yield from listing.texts(row)
        separator = ","


async def blob(read: Callable[[int, int], Awaitable[Piece]]) -> Response:
    """The bytes of a blob, which `read` gives from one on and up to a number."""
    first = await read(0, PIECE)
    if first.size <= PIECE:
        return Answer(first.data, _BYTES)
    return LongAnswer(_pieces(read, first), _BYTES, {"Content-Length": str(first.size)})


async def _pieces(read: Callable[[int, int], Awaitable[Piece]], first: Piece) -> Parts:
    yield iter([first.data])
    for start in range(PIECE, first.size, PIECE):
        yield iter([(await read(start, PIECE)).data])
