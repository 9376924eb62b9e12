"""What the tools that work in the sandbox share: how its errors answer a call."""

from collections.abc import Awaitable

from pilothouse.tools.sandbox.errors import RequestError, SandboxError
from pilothouse.tools.tool import ToolResult

DEFAULT_OUTPUT_BYTES = 15_000
"""Bytes of a tool's output that go to the model; of longer output the beginning and the end."""


async def answer(work: Awaitable[ToolResult]) -> ToolResult:
    """The result of the work. A request that the sandbox refused is an answer like any other; a sandbox that
    is gone says so with the code of the failure taxonomy, and every further call will."""
    try:
        return await work
    except RequestError as error:
        return ToolResult.of(str(error), {"error": type(error).__name__}, is_error=True)
    except SandboxError as error:
        text = f"F-RES: the sandbox can no longer be used: {error}. What the call did is not known."
        return ToolResult.of(text, {"error": "SandboxLost", "code": "F-RES"}, is_error=True)
