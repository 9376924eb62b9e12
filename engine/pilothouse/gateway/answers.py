"""Answers, sent in pieces."""

import json
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE = 1024 * 1024
"""Bytes that are sent at a time."""

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


class Answer(Response):
    """Nothing between here and the client may keep it. Each piece waits until those before have left, so that of a
    large body neither the connection nor TLS holds copies."""

    def __init__(
        self, body: bytes, media_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(body, status, {"Cache-Control": "no-store", **(headers or {})}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body), PIECE):
            await send({"type": "http.response.body", "body": self.body[start : start + PIECE], "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """In ASCII, so that every text of a record survives."""
    return Answer(_ENCODER.encode(body).encode(), "application/json", status, headers)
