"""What may be wrong with the volume or the settings, and what the container's log then says."""

import os

import pytest

from pilothouse.store.bundled.settings import Settings
from pilothouse.store.embedded.binaries import Binaries
from pilothouse.store.errors import StoreUnusable
from tests.store.bundled.container import PASSWORD, Container


async def stopped(container: Container) -> None:
    process = await container.start()
    process.terminate()
    await process.wait()


async def test_data_of_another_version_is_left_as_it_is(container: Container) -> None:
    await stopped(container)
    version = container.settings.data / "PG_VERSION"
    version.write_text("17\n")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in container.settings.data.iterdir())
    told = await container.refusal()
    assert "was made by PostgreSQL 17, and this image runs 18; nothing was changed" in told
    assert "dump it with an image that has PostgreSQL 17" in told
    assert sorted((path.name, path.stat().st_mtime_ns) for path in container.settings.data.iterdir()) == before


async def test_a_folder_that_is_no_data_is_named(container: Container) -> None:
    container.settings.data.mkdir()
    assert "is no data of PostgreSQL" in await container.refusal()


async def test_a_volume_with_the_file_systems_own_folder_and_rights_that_the_kubelet_widened_will_do(
    container: Container,
) -> None:
    (container.settings.volume / "lost+found").mkdir(mode=0o700)
    await stopped(container)
    container.settings.data.chmod(0o2770)
    await container.start()


async def test_a_volume_that_belongs_to_another_is_named(container: Container) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give the folder to another")
    os.chown(container.settings.volume, 0, 0)
    told = await container.refusal()
    assert f"cannot be written by uid {container.owner.uid}: Permission denied; give the volume to that user" in told


@pytest.mark.parametrize("password", ["short", "with space and more", "quote'quote'", "", "ü" * 10])
async def test_a_password_that_would_need_quoting_is_refused_and_not_told(container: Container, password: str) -> None:
    container.set_password(password)
    with pytest.raises(StoreUnusable) as raised:
        container.settings.password()
    assert "8 to 128 of the characters A-Z a-z 0-9 . _ ~ -" in str(raised.value)
    assert not password or password not in str(raised.value)


async def test_a_statement_that_fails_does_not_tell_the_password(container: Container) -> None:
    await stopped(container)
    local = f"postgresql://postgres@/postgres?host={container.settings.run}&port={container.settings.port}"
    process = await container.start()
    await container.execute("ALTER ROLE pilothouse RENAME TO somebody", local)
    process.terminate()
    await process.wait()
    told = await container.refusal()
    assert 'role "pilothouse" does not exist' in told
    assert PASSWORD not in told


def test_a_version_that_the_image_lacks_is_named() -> None:
    with pytest.raises(StoreUnusable, match="there is no PostgreSQL 9 here, only"):
        Binaries.find(9)


def test_the_command_line_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Settings.of(["/volume"])
    assert "--run, --password-file" in capsys.readouterr().err
