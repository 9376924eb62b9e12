"""The id that stands in the database and in the release: a mistyped DSN must not run everything again."""

from uuid import UUID

import pytest

from pilothouse_operator.installation import Installation, StoreMismatch
from pilothouse_operator.kube.resources import CONFIG_MAPS
from tests.operator.fakekube import FakeKube

ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def kube() -> FakeKube:
    kube = FakeKube()
    kube.add_namespace("pilothouse")
    return kube


@pytest.fixture
def release(kube: FakeKube) -> Installation:
    return Installation(kube, "pilothouse", "pilothouse-installation")


def put(kube: FakeKube, data: dict[str, str] | None) -> None:
    body = {"metadata": {"name": "pilothouse-installation"}} | ({} if data is None else {"data": data})
    kube.put(CONFIG_MAPS, "pilothouse", body)


@pytest.mark.parametrize("data", [None, {}, {"id": ""}, {"other": "x"}])
async def test_a_release_that_was_never_migrated_knows_no_id(
    kube: FakeKube, release: Installation, data: dict[str, str] | None
) -> None:
    assert await release.recorded() is None
    put(kube, data)
    assert await release.recorded() is None


async def test_what_was_recorded_is_known(kube: FakeKube, release: Installation) -> None:
    put(kube, {"other": "kept"})
    await release.record(ONE)
    assert await release.recorded() == ONE
    found = kube.find(CONFIG_MAPS, "pilothouse", "pilothouse-installation")
    assert found is not None
    assert found["data"] == {"other": "kept", "id": str(ONE)}


async def test_an_id_that_is_none_is_no_licence_to_go_on(kube: FakeKube, release: Installation) -> None:
    put(kube, {"id": "mine"})
    with pytest.raises(StoreMismatch, match="pilothouse/pilothouse-installation"):
        await release.recorded()


@pytest.mark.parametrize(("recorded", "found"), [(None, None), (None, ONE), (ONE, ONE)])
def test_the_right_database_passes(release: Installation, recorded: UUID | None, found: UUID | None) -> None:
    release.check(recorded, found)


@pytest.mark.parametrize(("found", "what"), [(None, "is empty"), (OTHER, f"belongs to installation {OTHER}")])
def test_any_other_is_refused_with_the_remedy(release: Installation, found: UUID | None, what: str) -> None:
    with pytest.raises(StoreMismatch) as mismatch:
        release.check(ONE, found)
    for words in (what, str(ONE), "pilothouse/pilothouse-installation", "correct the DSN"):
        assert words in str(mismatch.value)
