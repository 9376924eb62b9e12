"""The log: one JSON object a line, on stderr."""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any


class JSONLines(logging.Formatter):
    """Each record as one line; `extra={"fields": {…}}` adds members to it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0]:
            kind, _, trace = record.exc_info
            line |= {"error": kind.__name__, "at": traceback.format_tb(trace)[-5:]}
        return json.dumps(line, default=str)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Sets up the log of this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
