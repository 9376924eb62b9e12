"""Functions as tools: what a model is told of them, and what becomes of a call."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from pilothouse.agents.messages import ImageContent, TextContent
from pilothouse.tools import running
from pilothouse.tools.function import FunctionTool, NotATool, tool
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.running import ToolContext
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.tools.calls import nobody, text, use


class Unit(StrEnum):
    METRE = "m"
    MILE = "mi"


class Place(BaseModel):
    """A place on a map."""

    name: str
    at: tuple[float, float] = Field(default=(0.0, 0.0), description="Latitude and longitude.")


@tool
def distance(start: Place, end: Place, unit: Unit = Unit.METRE, schema: str | None = None) -> str:
    """Says how far it is.

    The way is a straight line.

    Args:
        start: Where it begins.
        end (Place): Where it ends;
            a second line.
        unit: Of the answer.

    Returns:
        The distance.
    """
    return f"{start.name} to {end.name} in {unit.value}"


@tool(name="on-day", idempotent=True, execution_mode="sequential")
async def on_day(day: date, copies: Annotated[int, Field(ge=1, le=9)] = 1) -> list[dict[str, Any]]:
    """Lists the day.

    :param day: The day,
        as a date.
    :param int copies: How often.
    :returns: The list.
    """
    return [{"year": day.year, "day": day}] * copies


def test_the_signature_is_the_schema_and_the_docstring_describes_it() -> None:
    assert (distance.name, distance.idempotent, distance.execution_mode) == ("distance", False, "parallel")
    assert distance.description == "Says how far it is.\n\nThe way is a straight line."
    properties = distance.parameters["properties"]
    assert distance.parameters["required"] == ["start", "end"]
    assert distance.parameters["additionalProperties"] is False
    assert properties["start"]["description"] == "Where it begins."
    assert properties["end"]["description"] == "Where it ends; a second line."
    assert (properties["unit"]["default"], properties["unit"]["description"]) == ("m", "Of the answer.")
    assert "title" not in str(distance.parameters)
    assert ToolRegistry([distance]).problems("distance", {"start": {"name": "a"}, "end": {}}) == (
        'arguments.end: "name" is a required property'
    )


def test_a_sphinx_docstring_and_what_the_decorator_says() -> None:
    assert (on_day.name, on_day.idempotent, on_day.execution_mode) == ("on-day", True, "sequential")
    assert on_day.description == "Lists the day."
    assert on_day.parameters == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "description": "The day, as a date."},
            "copies": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1, "description": "How often."},
        },
        "required": ["day"],
        "additionalProperties": False,
    }


async def test_arguments_arrive_as_the_annotations_say() -> None:
    result = await use(distance, start={"name": "a"}, end={"name": "b"}, unit="mi")
    assert text(result) == "a to b in mi"
    assert text(await use(on_day, day="2026-05-04")) == '[{"year":2026,"day":"2026-05-04"}]'


async def test_what_the_schema_cannot_say_is_an_error_result() -> None:
    result = await use(on_day, day="yesterday")
    assert result.details == {"error": "InvalidArguments"}
    assert "day: Input should be a valid date" in text(result)


def test_a_function_can_still_be_called() -> None:
    assert distance(Place(name="a"), Place(name="b")) == "a to b in m"


@dataclass
class Point:
    x: int


@pytest.mark.feature("A39")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain", (TextContent(text="plain"),)),
        (None, ()),
        (7, (TextContent(text="7"),)),
        ({"a": [1, None]}, (TextContent(text='{"a":[1,null]}'),)),
        (Point(3), (TextContent(text='{"x":3}'),)),
        (Place(name="a"), (TextContent(text='{"name":"a","at":[0.0,0.0]}'),)),
        ([], (TextContent(text="[]"),)),
        ([TextContent(text="a"), ImageContent(media_type="image/png", data="AA==")], None),
        (ToolResult.of("own", {"a": 1}, is_error=True), None),
    ],
)
async def test_a_return_value_becomes_content(value: Any, content: Any) -> None:
    @tool
    def give() -> Any:
        """Gives it."""
        return value

    result = await use(give)
    if content is None:
        assert result == value or result.content == tuple(value)
    else:
        assert result == ToolResult(content)


@pytest.mark.feature("A38")
async def test_what_a_function_raises_is_what_the_call_raises() -> None:
    """The loop makes an error result of it, whatever the tool."""

    @tool
    def fail(luck: str) -> None:
        """Fails."""
        raise LookupError(f"no {luck}")

    with pytest.raises(LookupError, match="no luck"):
        await use(fail, luck="luck")


@pytest.mark.feature("A38")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_updates_arrive_in_order_and_before_the_result(kind: str) -> None:
    heard: list[str] = []

    async def on_update(partial: ToolResult) -> None:
        await asyncio.sleep(0)
        heard.append(text(partial))

    @tool
    def in_thread(context: ToolContext) -> str:
        """Counts."""
        for number in range(3):
            context.update(str(number))
        return context.call_id

    @tool
    async def in_task(*, told: ToolContext) -> str:
        """Counts."""
        for number in range(3):
            told.update(str(number))
        return told.call_id

    one = in_thread if kind == "sync" else in_task
    assert one.parameters["properties"] == {}
    result = await one.execute(ToolInvocation("C7", {}, on_update))
    assert (text(result), heard) == ("C7", ["0", "1", "2"])


async def test_a_sync_function_runs_beside_the_loop() -> None:
    ready = threading.Event()

    @tool
    def wait() -> str:
        """Waits."""
        ready.wait(30)
        return threading.current_thread().name

    work = asyncio.create_task(use(wait))
    await asyncio.sleep(0)
    ready.set()
    assert text(await work) == "pilothouse-tool"


async def cancelled(one: FunctionTool, begun: threading.Event) -> ToolResult:
    work = asyncio.create_task(one.execute(ToolInvocation("A", {}, nobody)))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    return await work


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Holds a function that ignores its cancellation until the test is over."""
    monkeypatch.setattr(running, "GRACE", 0.05)
    monkeypatch.setattr("pilothouse.tools.function.GRACE", 0.05)
    release = threading.Event()
    yield release
    release.set()


async def test_a_cancelled_async_function_is_cancelled() -> None:
    begun = threading.Event()

    @tool
    async def wait() -> None:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await cancelled(wait, begun)


async def test_a_function_that_looks_at_its_context_ends_in_time() -> None:
    begun = threading.Event()

    @tool
    def wait(context: ToolContext) -> str:
        """Waits."""
        begun.set()
        while not context.cancelled:
            threading.Event().wait(0.001)
        return "ended early"

    assert text(await cancelled(wait, begun)) == "ended early"


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_function_that_ignores_its_cancellation_is_given_up_and_the_result_says_so(
    kind: str, stuck: threading.Event
) -> None:
    begun = threading.Event()
    over = asyncio.Event()

    @tool(name="stubborn")
    def in_thread() -> None:
        """Goes on."""
        begun.set()
        stuck.wait(30)

    @tool(name="stubborn")
    async def in_task() -> None:
        """Goes on."""
        begun.set()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    result = await cancelled(in_thread if kind == "sync" else in_task, begun)
    over.set()
    assert result.details == {"error": "Aborted"}
    assert text(result) == "Cancelled, but `stubborn` did not stop within 0.05 seconds; it may still be at work."


async def test_sys_exit_ends_the_tool_alone() -> None:
    @tool
    def leave() -> None:
        """Leaves."""
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        await use(leave)


def undocumented(a: int) -> None: ...


def unannotated(a) -> None:  # type: ignore[no-untyped-def]
    """Has no types."""


def variable(*names: str) -> None:
    """Takes any number."""


def misdescribed(a: Literal[1]) -> None:
    """Has one.

    Args:
        b: Is not there.
    """


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (undocumented, "needs a docstring"),
        (unannotated, "`a` of the tool `unannotated` needs a type annotation"),
        (variable, "cannot be given by name"),
        (misdescribed, "describes `b`, which is no parameter"),
        (lambda: None, "`<lambda>` cannot be a tool's name"),
    ],
)
def test_a_function_that_a_model_could_not_call_is_refused(function: Any, why: str) -> None:
    with pytest.raises(NotATool, match=why):
        tool(function)
