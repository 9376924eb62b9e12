"""What the tools that work in the sandbox share: where they find it, and how its errors answer a call."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from pilothouse.records.failures import OUTCOME_UNKNOWN, Failed, FailureCode
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import RequestError, SandboxError
from pilothouse.tools.tool import Tool, ToolResult

TRIES = 3
"""Sandboxes that a repeatable call may lose before the task fails."""


class Sandboxes(Protocol):
    """Where the tools of an agent find their sandbox, as one that was killed may have a successor."""

    async def current(self) -> Sandbox:
        """The sandbox, which can be used at this moment. Raises SandboxError if there is none and will be none."""
        ...


async def answer(tool: Tool, sandboxes: Sandboxes, work: Callable[[Sandbox], Awaitable[ToolResult]]) -> ToolResult:
    """The result of the work. A request that the sandbox refused is an answer like any other.

    A call that was under way when the sandbox went away is made again in its successor if the tool is idempotent;
    otherwise its outcome is unknown and Failed ends the task, as it does where no sandbox comes any more.
    """
    lost: SandboxError | None = None
    for _ in range(TRIES):
        sandbox = await _find(sandboxes)
        try:
            return await work(sandbox)
        except RequestError as error:
            return ToolResult.of(str(error), {"error": type(error).__name__}, is_error=True)
        except SandboxError as error:
            if not tool.idempotent:
                raise _outcome_unknown(tool, error) from None
            lost = error
    raise Failed(FailureCode.RES, f"each of {TRIES} sandboxes was lost during a call of `{tool.name}`: {lost}")


async def _find(sandboxes: Sandboxes) -> Sandbox:
    try:
        return await sandboxes.current()
    except SandboxError as error:
        raise Failed(FailureCode.RES, f"the sandbox can no longer be used: {error}") from None


def _outcome_unknown(tool: Tool, error: SandboxError) -> Failed:
    text = (
        f"a call of the tool `{tool.name}` was under way when its sandbox was lost ({error}), so nobody knows what it "
        "did; the tool is not declared idempotent, so it is not run again"
    )
    return Failed(FailureCode.UNK, text, OUTCOME_UNKNOWN)
