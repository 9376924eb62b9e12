"""Tools of the reference library's server: listed, called, cancelled, changed, and after its death."""

import asyncio

import pytest

from pilothouse.agents.messages import ImageContent
from pilothouse.records.failures import Failed
from pilothouse.tools.mcp.server import McpTool
from pilothouse.tools.tool import ToolResult
from tests.tools.calls import text
from tests.tools.mcp.conftest import Reference, all_ways, until
from tests.tools.sandbox.processes import alive

NAMES = ["ref_echo", "ref_content", "ref_fail", "ref_slow", "ref_die", "ref_die_once", "ref_grow", "ref_big"]


@all_ways
@pytest.mark.feature("B12")
async def test_all_pages_of_tools_are_listed_and_called(reference: Reference) -> None:
    async with reference.opened():
        assert reference.registry.names[:8] == tuple(NAMES)
        assert len(reference.registry.names) == 10
        [odd] = [name for name in reference.registry.names if name.startswith("ref_odd_name_x_")]
        assert text(await reference.use("ref_echo", text="hé")) == "echo: hé"
        assert text(await reference.use(odd)) == "odd.name/x: "
    assert reference.told == ["the tool 'echo' of the MCP server ref is left out: it is listed twice"]
    assert reference.calls() == ["echo", "odd.name/x"]


async def test_what_a_server_says_of_a_tool_is_bounded_and_its_hints_are_kept(reference: Reference) -> None:
    async with reference.opened():
        tools = {name: reference.registry.find(name) for name in NAMES}
        echo, once, big = tools["ref_echo"], tools["ref_die_once"], tools["ref_big"]
        assert isinstance(echo, McpTool)
        assert isinstance(once, McpTool)
        assert isinstance(big, McpTool)
        assert (echo.idempotent, echo.offer.read_only, echo.offer.destructive) == (True, True, False)
        assert (once.idempotent, once.offer.read_only, once.offer.destructive) == (True, False, False)
        assert (big.idempotent, big.offer.destructive) == (False, True)
        assert echo.description == "Does echo."
        assert len(big.description) < 5_000


async def test_tools_are_included_and_excluded_by_the_servers_own_names(reference: Reference) -> None:
    async with reference.opened(include=["echo", "fail", "slow", "lost"], exclude=["fail"]):
        assert reference.registry.names == ("ref_echo", "ref_slow")
    assert reference.told[0] == "the MCP server ref has no tool lost, which is to be included"


async def test_every_kind_of_content_is_shown_or_named(reference: Reference) -> None:
    async with reference.opened():
        result = await reference.use("ref_content")
    assert text(result).split("\n") == text(result).splitlines()
    assert result.content[1] == ImageContent(media_type="image/png", data="AAAA")
    assert [block.text for block in result.content if block.type == "text"] == [
        "text",
        "[image, image/x-odd, 4 bytes in Base64: not shown]",
        "[audio, audio/wav, 4 bytes in Base64: not shown]",
        "[resource file:///a.txt, text/plain]\nin it",
        "[resource file:///b, of no known type, 4 bytes in Base64: not shown]",
        "[link to the resource file:///c: link]",
    ]
    assert result.details == {"structuredContent": {"n": "not an integer"}}


async def test_an_error_of_the_tool_is_an_error_result(reference: Reference) -> None:
    async with reference.opened():
        result = await reference.use("ref_fail")
    assert (result.is_error, text(result)) == (True, "it failed")


async def test_a_huge_result_arrives_whole(reference: Reference) -> None:
    async with reference.opened():
        assert len(text(await reference.use("ref_big"))) == 10_000_000


@pytest.mark.feature("A38")
async def test_progress_is_an_update(reference: Reference) -> None:
    heard: list[str] = []

    async def on_update(partial: ToolResult) -> None:
        heard.append(text(partial))

    async with reference.opened():
        await reference.use("ref_progress", on_update)
    assert heard == ["1 of 2: step 1", "2 of 2: step 2"]


@all_ways
async def test_tools_that_are_new_can_be_called_after_the_call_that_brought_them(reference: Reference) -> None:
    async with reference.opened():
        await reference.use("ref_grow")
        await until(lambda: "ref_grown" in reference.registry.names)  # The news may have a way of its own.
        assert text(await reference.use("ref_grown")) == "grown: "
    assert "ref_huge" not in reference.registry.names
    assert "its input schema takes 70," in reference.told[-1]


@all_ways
async def test_a_call_that_is_cancelled_is_cancelled_in_the_server(reference: Reference) -> None:
    async with reference.opened():
        call = asyncio.create_task(reference.use("ref_slow"))
        await reference.came("waiting")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "cancelled" in reference.calls())
        assert text(await reference.use("ref_echo")) == "echo: "


async def test_a_call_that_takes_too_long_is_ended_and_the_server_told(reference: Reference) -> None:
    async with reference.opened(call_limit=1.0):
        result = await reference.use("ref_slow")
        assert result.details == {"error": "TimedOut"}
        assert "did not answer within 1 seconds" in text(result)
        await until(lambda: "cancelled" in reference.calls())


async def test_calls_run_side_by_side(reference: Reference) -> None:
    async with reference.opened():
        slow = asyncio.create_task(reference.use("ref_slow"))
        await reference.came("waiting")
        assert text(await reference.use("ref_echo", text="meanwhile")) == "echo: meanwhile"
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def again(reference: Reference) -> None:
    """Starts the server anew, if it does not do so by itself."""
    if reference.http is not None:
        await reference.http.kill()
        await reference.http.start()


@all_ways
@pytest.mark.feature("W24")
async def test_a_server_that_dies_in_a_call_leaves_an_unknown_outcome_and_is_connected_to_anew(
    reference: Reference,
) -> None:
    async with reference.opened():
        with pytest.raises(Failed, match=r"a call of the tool `die` was under way when its MCP server `ref`") as failed:
            await reference.use("ref_die")
        assert (failed.value.failure.code, failed.value.failure.reason) == ("F-UNK", "OutcomeUnknown")
        await again(reference)
        assert text(await reference.use("ref_echo")) == "echo: "
    assert reference.calls() == ["die", "echo"]
    assert "connecting anew to the MCP server ref" in reference.told


async def test_an_idempotent_call_is_made_again_when_its_server_has_died(reference: Reference) -> None:
    async with reference.opened():
        call = asyncio.create_task(reference.use("ref_die_once"))
        result = await call
    if reference.http is None:
        assert text(result) == "die_once: "
        assert reference.calls() == ["die_once", "die_once"]
    else:  # Nobody has started it anew.
        assert "cannot be reached" in text(result)
        assert reference.calls() == ["die_once"]


async def test_a_server_that_is_gone_between_calls_is_connected_to_anew_or_named(reference: Reference) -> None:
    async with reference.opened():
        if reference.http is not None:
            await reference.http.kill()
            result = await reference.use("ref_echo")
            assert result.details == {"error": "Unreachable"}
            assert "cannot be reached" in text(result)
            await reference.http.start()
            assert text(await reference.use("ref_echo")) == "echo: "
        else:
            assert reference.sandbox is not None
            await reference.sandbox.run('kill -9 "$(cat pid)"', timeout=10)
            await until(lambda: not alive(int((reference.folder / "pid").read_text())))
            assert text(await reference.use("ref_echo")) == "echo: "


async def test_a_lost_sandbox_leaves_an_unknown_outcome(reference: Reference) -> None:
    if reference.sandbox is None:
        return
    async with reference.opened():
        call = asyncio.create_task(reference.use("ref_slow"))
        await reference.came("waiting")
        await reference.sandbox.close()
        with pytest.raises(Failed, match="the sandbox was closed"):
            await call
        result = await reference.use("ref_echo")
        assert "the sandbox can no longer be used" in text(result)
