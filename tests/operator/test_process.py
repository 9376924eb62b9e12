"""What must hold before the operator works: its kinds, and the right database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.postgres import installation_of, migrate
from pilothouse_operator import migrate as job
from pilothouse_operator import process
from pilothouse_operator.installation import StoreMismatch
from pilothouse_operator.kube.errors import Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import CONFIG_MAPS, OURS, Resource
from pilothouse_operator.probes import Probes
from tests.operator.desk import SETTINGS
from tests.operator.fakekube import FakeKube

CONFIG_MAP = SETTINGS.installation_config_map


class Waits(Probes):
    """Remembers what was waited for, and lets a test mend it."""

    def __init__(self, mend: Callable[[], None]) -> None:
        super().__init__(0)
        self.reasons: list[str] = []
        self._mend = mend

    def wait_for(self, what: str) -> None:
        self.reasons.append(what)
        self._mend()


@pytest.fixture
def kube() -> FakeKube:
    kube = FakeKube()
    kube.add_namespace("pilothouse")
    kube.put(CONFIG_MAPS, "pilothouse", {"metadata": {"name": CONFIG_MAP}})
    return kube


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PAUSE", 0)


def record(kube: FakeKube, id_: UUID | None) -> None:
    kube.change(CONFIG_MAPS, "pilothouse", CONFIG_MAP, lambda obj: obj.update(data={"id": str(id_)} if id_ else {}))


# ---- the kinds


@pytest.mark.parametrize("missing", OURS)
async def test_a_kind_that_is_not_served_ends_the_process_with_the_remedy(missing: Resource) -> None:
    class Without(FakeKube):
        async def names(self, resource: Resource, namespace: str | None = None, labels: str = "") -> list[Object]:
            if resource == missing:
                raise Refused("the server could not find the requested resource")
            return []

    with pytest.raises(process.Unfit, match=rf"kind {missing.kind} cannot be listed.*CRDs"):
        await process._readable(Without(), SETTINGS)


async def test_an_api_server_that_is_away_is_waited_for(kube: FakeKube) -> None:
    kube.away = True
    waiting = asyncio.create_task(process._readable(kube, SETTINGS))
    while len(kube.reads) < 3:  # noqa: ASYNC110 - the other task has nothing to tell of it
        await asyncio.sleep(0)
    kube.away = False
    await waiting


async def test_without_rights_in_the_cluster_nothing_is_served(kube: FakeKube) -> None:
    kube.admission.blind = True
    with pytest.raises(process.Unfit, match=r"kind Agent cannot be listed.*give the rights"):
        await process._readable(kube, SETTINGS)


class Closed(FakeKube):
    """Some namespaces may not be read, as those whose RoleBinding went with them."""

    closed: tuple[str, ...] = ()

    async def names(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        if namespace in self.closed:
            raise Refused(f'cannot list resource "{resource.plural}" in the namespace "{namespace}"', forbidden=True)
        return await super().names(resource, namespace, labels)


async def test_a_namespace_that_may_not_be_read_keeps_no_other_from_being_served() -> None:
    kube, asked = Closed(), replace(SETTINGS, namespaces=("team-a", "team-b", "team-c"))
    kube.closed = ("team-a", "team-c")
    assert await process._readable(kube, asked) == replace(SETTINGS, namespaces=("team-b",))
    kube.closed = asked.namespaces
    with pytest.raises(process.Unfit, match="no namespace may be read"):
        await process._readable(kube, asked)


async def test_a_namespace_that_may_be_read_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RETURN_PAUSE", 0)
    kube = Closed()
    kube.closed = ("team-a", "team-b")
    noticing = asyncio.create_task(process.until_readable(kube, ("team-a", "team-b")))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not noticing.done()
    kube.closed = ("team-a",)
    await noticing


# ---- the database


async def test_the_right_database_is_taken_at_once(kube: FakeKube, database: str) -> None:
    found = await installation_of(database)
    record(kube, found)
    probes = Waits(lambda: None)
    assert await process._right_store(replace(SETTINGS, dsn=database), kube, probes) == found
    assert probes.reasons == []


async def test_a_database_of_another_installation_is_left_alone_until_the_dsn_is_right(
    kube: FakeKube, database: str
) -> None:
    found = await installation_of(database)
    record(kube, other := uuid4())
    probes = Waits(lambda: record(kube, found))
    assert await process._right_store(replace(SETTINGS, dsn=database), kube, probes) == found
    (reason,) = probes.reasons
    assert f"belongs to installation {found}, and this release to installation {other}" in reason
    assert kube.writes == []


async def test_a_database_that_was_never_migrated_is_waited_for(kube: FakeKube, database: str) -> None:
    found = await installation_of(database)
    probes = Waits(lambda: record(kube, found))
    assert await process._right_store(replace(SETTINGS, dsn=database), kube, probes) == found
    assert probes.reasons == ["the migrate Job has not recorded the installation yet"]


async def test_an_empty_database_is_waited_for_by_a_release_that_knows_another(
    kube: FakeKube, empty_database: str
) -> None:
    class EnoughError(Exception):
        pass

    def stop() -> None:
        raise EnoughError

    record(kube, uuid4())
    probes = Waits(stop)
    with pytest.raises(EnoughError):
        await process._right_store(replace(SETTINGS, dsn=empty_database), kube, probes)
    assert len(probes.reasons) == 1
    assert await installation_of(empty_database) is None


# ---- the migrate Job


@pytest.fixture
def given(kube: FakeKube, empty_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The Job's environment; the DSN of an empty database."""

    @asynccontextmanager
    async def client() -> AsyncIterator[FakeKube]:
        yield kube

    monkeypatch.setattr(job, "kube_client", client)
    monkeypatch.setenv("PILOTHOUSE_DSN", empty_database)
    monkeypatch.setenv("PILOTHOUSE_NAMESPACE", "pilothouse")
    monkeypatch.setenv("PILOTHOUSE_INSTALLATION_CONFIGMAP", CONFIG_MAP)
    return empty_database


def recorded(kube: FakeKube) -> str | None:
    found = kube.find(CONFIG_MAPS, "pilothouse", CONFIG_MAP)
    assert found is not None
    text: str | None = found.get("data", {}).get("id")
    return text


async def test_the_first_migration_ties_the_release_to_its_database_for_good(kube: FakeKube, given: str) -> None:
    await job.run()
    assert recorded(kube) == str(await installation_of(given))
    before = list(kube.writes)
    await job.run()
    assert kube.writes == before


async def test_a_migration_that_was_cut_off_before_it_was_recorded_goes_on(kube: FakeKube, given: str) -> None:
    await migrate(given)
    await job.run()
    assert recorded(kube) == str(await installation_of(given))


async def test_an_empty_database_of_a_release_that_has_one_is_not_touched(kube: FakeKube, given: str) -> None:
    record(kube, other := uuid4())
    with pytest.raises(StoreMismatch, match="is empty"):
        await job.run()
    assert await installation_of(given) is None
    assert recorded(kube) == str(other)


async def test_a_database_of_another_release_is_not_migrated(kube: FakeKube, given: str) -> None:
    await migrate(given)
    record(kube, uuid4())
    with pytest.raises(StoreMismatch, match="belongs to installation"):
        await job.run()


async def test_the_job_waits_for_a_database_and_an_api_server_that_are_away(
    kube: FakeKube, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "PAUSE", 0)
    real, tries = job.run, 0

    async def run() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreUnavailable("the database starts")
        kube.away = tries == 2
        await real()

    monkeypatch.setattr(job, "run", run)
    await job.patiently()
    assert tries == 3
    assert recorded(kube) == str(await installation_of(given))
