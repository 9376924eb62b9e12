"""What is on record of a cluster."""

import pytest

from e2e.cluster.layout import Layout
from e2e.cluster.state import State


def test_reads_what_was_written(layout: Layout) -> None:
    state = State("kind", "https://127.0.0.1:1", "bin-1", mutating_admission_policy=True, boot="b")
    state.save(layout)
    assert State.load(layout) == state


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "native"}', '{"unheard": 1}'])
def test_a_record_that_cannot_be_read_is_none(layout: Layout, content: str) -> None:
    (layout.run / "state.json").write_text(content)
    assert State.load(layout) is None
