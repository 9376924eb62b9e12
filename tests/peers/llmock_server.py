"""Runs llmock on a free port: prints its address, lives until its standard input ends."""

import sys

from llmock.testing import LLMockServer  # type: ignore[import-not-found]

with LLMockServer() as server:
    print(server.url, flush=True)  # noqa: T201
    sys.stdin.read()
