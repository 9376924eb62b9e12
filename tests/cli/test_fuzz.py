"""Whatever is done to a good file, it is read or refused, never a crash."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.cli.documents.document import Refused
from pilothouse.cli.documents.reader import read_documents
from pilothouse.cli.validate import validate

GOOD = Path(__file__).parent / "good" / "everything.yaml"
TEXT = GOOD.read_bytes()
TREES: list[Any] = list(yaml.safe_load_all(TEXT))

SNIPPETS = [
    *(b"&a ", b"*a", b"<<: ", b"!!str ", b"? ", b"- ", b": ", b"{", b"}", b"[", b"]", b'"', b"'", b"#", b"\t"),
    *(b"|\n", b">\n", b"---\n", b"...\n", b"%YAML 1.1\n", b"\n  ", b"\0", b"\xff", b"\xe2\x80\xa8"),
    *(b"${{", b"}}", b"null", b"-.inf", b"9" * 30),
]

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["${{ params.env }}", "${{ steps.fetch.outputs", "steps.any.state", "1 +", "fetch", "..", "5m"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@st.composite
def damaged_texts(draw: st.DrawFn) -> bytes:
    data = TEXT
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        data = data[:start] + draw(st.sampled_from(SNIPPETS) | st.binary(max_size=4)) + data[end:]
    return data


@st.composite
def damaged_trees(draw: st.DrawFn) -> list[Any]:
    trees: list[Any] = list(yaml.safe_load_all(TEXT))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for tree in trees for place in _places(tree)]
        holder, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            holder[key] = draw(json_values)
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=6))] = holder.pop(key)
        else:
            holder.append(holder[key])
    return trees


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in items] + [place for _, child in items for place in _places(child)]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(damaged_texts())
def test_a_damaged_text_is_read_or_refused(data: bytes) -> None:
    with suppress(Refused):
        for document in read_documents(data):
            assert document.line(()) is not None


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(trees=damaged_trees())
async def test_a_damaged_tree_gives_lines_and_no_crash(
    trees: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "a.yaml"
    path.write_text(yaml.safe_dump_all(trees, allow_unicode=True, sort_keys=False), encoding="utf-8")
    for line in await validate([path]):
        assert line.startswith(str(path))
        assert "\n" not in line
