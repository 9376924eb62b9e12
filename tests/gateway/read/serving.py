"""An application on a real socket of this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[str]:
    """Its address, as `http://127.0.0.1:1234`."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none", **options)
    server = uvicorn.Server(config)
    sockets = [config.bind_socket()]
    task = asyncio.create_task(server.serve(sockets))
    try:
        host, port = sockets[0].getsockname()[:2]
        yield f"{'https' if config.is_ssl else 'http'}://{host}:{port}"
    finally:
        server.should_exit = server.force_exit = True
        await task
        sockets[0].close()
