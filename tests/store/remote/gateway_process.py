"""A gateway in a process of its own, which kills itself at one of its writes: `DSN PORT NUMBER MOMENT`, number 0 for
never. It prints its port, and serves until its input ends."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

from pilothouse.gateway.app import build_app
from pilothouse.gateway.server import serving
from pilothouse.store.faults import KillAt, faulty
from pilothouse.store.postgres import open_store
from tests.gateway.doubles import FakeKube
from tests.gateway.serving import LISTEN, NO_HISTORY


async def serve(dsn: str, port: int, number: int, moment: Any) -> None:
    async with open_store(dsn) as store:
        app = build_app(faulty(store, KillAt(number, moment)), NO_HISTORY, FakeKube())
        async with serving(app, replace(LISTEN, port=port)) as bound:
            sys.stdout.write(f"{bound}\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
