"""What a log amounts to, whatever a program wrote into it: an outcome that can be stored."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.values import DEPTH_LIMIT, Outputs, ValueRefused
from pilothouse.store.keeping import keep_all
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.rows import closing_row
from pilothouse.store.transitions import AttemptClosing
from pilothouse.workflows.commands import frames
from pilothouse.workflows.commands.outcome import CommandOutcome, outcome, read_log

ANY_TEXT = st.lists(st.sampled_from("ab \n\0é😀\ud800\udc00\udcff\udfff") | st.characters(), max_size=8).map("".join)
"""Also NUL, and halves of surrogate pairs, of which some stand for bytes."""

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
EXITS = st.fixed_dictionaries(
    {}, optional={"code": st.integers(), "signal": st.integers(), "problem": ANY_TEXT, "stopped": st.booleans()}
)
FRAMES = (
    st.tuples(st.sampled_from(["out", "err", "output"]), ANY_TEXT)
    | st.tuples(st.just("exit"), EXITS)
    | st.tuples(st.sampled_from(["start", "out", "err", "output", "exit"]), ANY_JSON)
)
FORGED = FRAMES.map(lambda frame: json.dumps(dict([frame])).encode())
LINES = st.lists(FORGED | st.binary(max_size=40), max_size=6)
"""What a program may write into its own log, between the frames of our entry point."""


def log_of(lines: list[bytes], output: bytes = b"") -> bytes:
    text = output.decode("utf-8", "surrogateescape")
    ours = [frames.encode("start", {"pid": 7, "at": 0.0}), *(line + b"\n" for line in lines)]
    return b"".join([*ours, *frames.encode_text("output", text), frames.encode_exit(frames.Exit(code=0))])


def kept(result: CommandOutcome) -> Outputs:
    """The outputs, as the executors keep them. Raises ValueRefused."""
    return asyncio.run(keep_all(MemoryRunStore(), UUID(int=1), result.outputs))


def row(result: CommandOutcome, outputs: Outputs) -> Any:
    """The row of an attempt that ends so. Nobody is there to whom a refusal could be told."""
    return closing_row(AttemptClosing(uuid4(), 1, result.state, outputs, result.failure))


@given(LINES, ANY_JSON.map(json.dumps).map(str.encode) | st.binary(max_size=40))
def test_whatever_a_program_writes_its_outcome_can_be_stored(lines: list[bytes], output: bytes) -> None:
    result = outcome(read_log(log_of(lines, output)))
    for name in ("stdout", "stderr"):
        assert result.outputs[name].encode().decode() == result.outputs[name]
    try:
        outputs = kept(result)
    except ValueRefused:
        assert result.outputs.keys() > {"exitCode", "stdout", "stderr"}, "only its own object may be refused"
        outputs = {}
    assert row(result, outputs)["state"] == result.state


@given(st.binary(max_size=60))
def test_a_stream_of_any_bytes_is_kept_as_text(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    read = read_log(log_of(list(frames.encode_text("out", text))))
    assert outcome(read).outputs["stdout"] == data.decode("utf-8", "replace").rstrip("\n")


@pytest.mark.parametrize("half", [0xD800, 0xDBFF, 0xDC00, 0xDC7F, 0xDD00, 0xDFFF], ids=hex)
def test_half_of_a_surrogate_pair_in_a_forged_frame_is_no_character(half: int) -> None:
    result = outcome(read_log(log_of([frames.encode("out", f"a{chr(half)}b")])))
    assert result.outputs["stdout"] == "a\ufffdb"


@pytest.mark.parametrize("number", ["code", "signal"])
def test_an_end_that_no_process_has_is_no_end(number: str) -> None:
    forged = frames.encode("exit", {number: 2**70})
    assert outcome(read_log(log_of([forged]))).outputs["exitCode"] == 0


def test_what_is_as_deep_as_a_value_may_be_fits_into_its_row() -> None:
    deepest: Any = 1
    for _ in range(DEPTH_LIMIT):
        deepest = [deepest]
    output = json.dumps({"deep": deepest}).encode()
    result = outcome(read_log(log_of([], output)))
    assert row(result, kept(result))["state"] == "Succeeded"


def test_an_output_that_cannot_be_stored_is_named() -> None:
    result = outcome(read_log(log_of([], b'{"sum": {"total": 18446744073709551616}}')))
    with pytest.raises(ValueRefused, match=r"^`sum.total` is an integer beyond 64 bits"):
        kept(result)


def test_an_output_that_is_no_json_fails_the_command() -> None:
    result = outcome(read_log(log_of([], b"{\xff}")))
    assert result.failure is not None
    assert result.failure == Failure(FailureCode.VAL, result.failure.message)
    assert result.failure.message.startswith("$PILOTHOUSE_OUTPUT does not hold JSON")
