"""Answers in JSON."""

import json
from collections.abc import Mapping

from starlette.responses import Response

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """In ASCII, so that every text of a record survives. Nothing between here and the client may keep it."""
    kept = {"Cache-Control": "no-store", **(headers or {})}
    return Response(_ENCODER.encode(body), status, kept, media_type="application/json")
