"""What of an answer the model sees, what is kept, and what is taken out."""

import asyncio
import base64
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilothouse.agents.messages import ImageContent, TextContent
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.values import BlobRef, digest
from pilothouse.store.errors import StoreUnavailable
from pilothouse.tools import output
from pilothouse.tools.output import BoundedTool, Outputs
from pilothouse.tools.redaction import MARK, Redactor
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool
from tests.tools.calls import nobody, text


@dataclass
class Blobs:
    kept: dict[str, bytes] = field(default_factory=dict)

    async def put(self, data: bytes) -> BlobRef:
        self.kept[digest(data)] = data
        return BlobRef(digest(data), len(data))


@pytest.fixture
def blobs() -> Blobs:
    return Blobs()


def outputs(blobs: Blobs, *secrets: str) -> Outputs:
    redactor = Redactor()
    for secret in secrets:
        redactor.learn(secret)
    return Outputs(blobs.put, redactor, 1_000)


def whole(result: ToolResult) -> Any:
    assert isinstance(result.details, dict)
    return result.details["output"]


async def test_a_short_answer_stays_as_it_is(blobs: Blobs) -> None:
    result = ToolResult.of("short", {"a": 1}, is_error=True)
    assert await outputs(blobs).bound(result) == result
    assert blobs.kept == {}


async def test_the_blocks_of_a_short_answer_stay_in_their_order(blobs: Blobs) -> None:
    image = ImageContent(media_type="image/png", data="AA==")
    content = (TextContent(text="a secret"), image, TextContent(text="b"))
    result = await outputs(blobs, "secret").bound(ToolResult(content))
    assert result.content == (TextContent(text=f"a {MARK}"), image, TextContent(text="b"))


@pytest.mark.feature("A39")
@pytest.mark.parametrize("details", [None, {"exitCode": 0}, "text"])
async def test_of_a_long_answer_both_ends_are_shown_and_the_whole_is_kept(blobs: Blobs, details: Any) -> None:
    long = "HEAD" + "x" * 10_000_000 + "TAIL"
    result = await outputs(blobs).bound(ToolResult.of(long, details))
    assert text(result).startswith("HEADx")
    assert text(result).endswith("xTAIL")
    assert "9999008 bytes left out" in text(result)
    assert len(text(result)) < 1_100
    assert blobs.kept[whole(result)["digest"]].decode() == long
    assert whole(result)["size"] == len(long)


async def test_of_an_answer_without_measure_both_ends_are_kept(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "WHOLE_LIMIT", 10_000)
    result = await outputs(blobs).bound(ToolResult.of("HEAD" + "x" * 50_000 + "TAIL"))
    kept = blobs.kept[whole(result)["digest"]]
    assert (kept[:4], kept[-4:], len(kept) < 10_100) == (b"HEAD", b"TAIL", True)


async def test_characters_are_not_cut_into_something_else(blobs: Blobs) -> None:
    shown = text(await outputs(blobs).bound(ToolResult.of("é" * 2_001 + "\ud800")))
    assert set(shown.partition("\n")[0]) <= {"é", "\ufffd"}


async def test_the_texts_of_an_answer_share_the_room(blobs: Blobs) -> None:
    texts = tuple(TextContent(text=letter * 600) for letter in "abc")
    image = ImageContent(media_type="image/png", data="AA==")
    result = await outputs(blobs).bound(ToolResult((texts[0], image, *texts[1:])))
    assert result.content[1:] == (image,)
    assert text(result).startswith("a" * 500)
    assert len(text(result)) < 1_100


async def test_an_image_that_is_too_large_is_kept_and_not_shown(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "IMAGE_LIMIT", 1_000)
    data = os.urandom(2_000)
    image = ImageContent(media_type="image/png", data=base64.b64encode(data).decode())
    result = await outputs(blobs).bound(ToolResult((image,)))
    assert [block.type for block in result.content] == ["text"]
    assert result.details == {"images": [{"digest": digest(data), "size": 2_000}]}
    assert blobs.kept[digest(data)] == data


async def test_details_without_measure_are_left_out(blobs: Blobs) -> None:
    result = await outputs(blobs).bound(ToolResult.of("a", {"b": "x" * 100_000}))
    assert result.details == {"omitted": "100,009 bytes of details; at most 65,536 are kept"}


async def test_secrets_are_taken_out_of_all_that_is_shown_or_kept(blobs: Blobs) -> None:
    """Before anything is cut: half a secret would not be found."""
    secret = "s3cr3t-" * 50
    bound = outputs(blobs, secret)
    result = await bound.bound(ToolResult.of("x" * 300 + secret + "y" * 2_000, {"env": {"KEY": secret}}))
    assert "s3cr3t" not in str(result)
    assert MARK in text(result)
    assert not any(b"s3cr3t" in data for data in blobs.kept.values())
    assert "s3cr3t" not in str(bound.partial(ToolResult.of(f"{secret} so far")))


async def test_a_tool_is_bounded_in_its_updates_its_answer_and_its_error(blobs: Blobs) -> None:
    heard: list[str] = []

    async def on_update(partial: ToolResult) -> None:
        heard.append(text(partial))

    async def work(call: ToolInvocation) -> ToolResult:
        await call.on_update(ToolResult.of("secret" * 10_000))
        if call.arguments:
            raise ValueError("the secret is wrong " + "x" * 5_000)
        return ToolResult.of("secret")

    tool = BoundedTool(ATool(work=work, idempotent=True), outputs(blobs, "secret"))
    assert (tool.name, tool.idempotent, tool.execution_mode) == ("say", True, "parallel")
    assert text(await tool.execute(ToolInvocation("A", {}, on_update))) == MARK
    failed = await tool.execute(ToolInvocation("A", {"text": ""}, on_update))
    assert failed.is_error
    assert text(failed).startswith(f"the {MARK} is wrong xxx")
    assert len(text(failed)) < 1_100
    assert [len(partial) < 1_100 and "secret" not in partial for partial in heard] == [True, True]


@pytest.mark.parametrize(
    "error", [Failed(FailureCode.UNK, "unknown"), StoreUnavailable("away"), asyncio.CancelledError()]
)
async def test_what_ends_the_task_is_passed_on(blobs: Blobs, error: BaseException) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        raise error

    with pytest.raises(type(error)):
        await BoundedTool(ATool(work=work), outputs(blobs)).execute(ToolInvocation("A", {}, nobody))
