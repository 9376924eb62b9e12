"""A branch as a session of its own."""

from uuid import uuid4

import pytest

from pilothouse.agents.session import CompactionBody, SessionError, SessionTree, fork
from pilothouse.agents.session.times import timestamp_of
from tests.agents.desk import Desk
from tests.agents.session.making import answer, context, user


@pytest.fixture
async def tree(desk: Desk) -> SessionTree:
    """one, two, three and, from two on, else."""
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    await tree.append([user("one"), answer("two"), user("three")])
    await tree.move(tree.branch()[1].id)
    await tree.append([user("else")])
    return tree


@pytest.mark.feature("A43")
async def test_a_fork_has_the_branch_up_to_the_target_and_goes_its_own_way(tree: SessionTree) -> None:
    _, two, three = tree.path(tree.entries[2].id)
    made = await fork(tree, three.id)
    assert context(made) == [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert [entry.id for entry in made.branch()] == [entry.id for entry in tree.path(three.id)]
    await made.append([answer("four")])
    assert [entry.parent for entry in made.branch()[-2:]] == [two.id, three.id]
    assert len(tree.entries) == 5
    again = await SessionTree.open(tree.store, made.id)
    assert again.branch() == made.branch()


async def test_the_entries_of_a_fork_keep_their_times(tree: SessionTree) -> None:
    made = await fork(tree, tree.branch()[-1].id)
    assert [timestamp_of(entry) for entry in made.branch()] == [timestamp_of(entry) for entry in tree.branch()]
    twice = await fork(made, made.branch()[-1].id)
    assert [timestamp_of(entry) for entry in twice.branch()] == [timestamp_of(entry) for entry in tree.branch()]


async def test_a_fork_before_a_question_ends_with_what_precedes_it(tree: SessionTree) -> None:
    made = await fork(tree, tree.branch()[-1].id, "before")
    assert context(made) == [("user", "one"), ("assistant", "two")]
    assert (await fork(tree, tree.branch()[0].id, "before")).leaf is None


async def test_a_fork_before_anything_else_is_refused(tree: SessionTree) -> None:
    with pytest.raises(SessionError) as caught:
        await fork(tree, tree.branch()[1].id, "before")
    assert caught.value.code == "invalid_fork_target"
    for missing in (uuid4(), tree.entries[3].id):
        with pytest.raises(SessionError) as caught:
            await fork(tree, missing)
        assert caught.value.code == "not_found"


async def test_a_fork_goes_into_a_session_without_entries(tree: SessionTree) -> None:
    with pytest.raises(SessionError, match="has entries already"):
        await fork(tree, tree.branch()[0].id, session=tree.id)


@pytest.mark.feature("A52")
@pytest.mark.feature("A54")
async def test_names_come_along_as_they_are_now(tree: SessionTree) -> None:
    one, two, other = tree.branch()
    await tree.label(one.id, "first")
    await tree.label(two.id, "second")
    forked_at = tree.entries[-1].id
    await tree.label(other.id, "third")
    await tree.label(two.id, None)
    await tree.rename("work")
    made = await fork(tree, forked_at)
    assert made.labels() == {one.id: "first", other.id: "third"}
    assert made.name == "work"
    assert [entry.type for entry in made.branch()] == [*["message"] * 3, *["label"] * 4, "session_info"]


@pytest.mark.feature("A48")
async def test_what_a_summary_kept_is_kept_in_the_fork(tree: SessionTree) -> None:
    kept = tree.branch()[-1].id
    await tree.add(CompactionBody(summary="s", tokens_before=1, first_kept_entry_id=str(kept)))
    await tree.append([answer("four")])
    assert tree.leaf is not None
    assert context(await fork(tree, tree.leaf)) == context(tree)
