"""One POST to the store API: everything that keeps it from being answered is an outage."""

import httpx

from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.remote.problems import error_of


async def post(http: httpx.AsyncClient, method: str, body: bytes, token: str) -> httpx.Response:
    """The answer, of whatever status. Raises StoreUnavailable; the request may have been carried out then."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    try:
        return await http.post(method, content=body, headers=headers)
    except httpx.HTTPError as error:
        what = str(error) or type(error).__name__
        raise StoreUnavailable(f"the store API cannot be reached now: {what}") from error


def refusal(answer: httpx.Response) -> Exception:
    """What an answer that is no success means."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    return error_of(answer.status_code, body)
