"""What the operator is told by its Deployment."""

from pathlib import Path

import pytest

from pilothouse_operator.settings import Settings, SettingsError


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "ca.crt").write_text("PEM\n")
    return {
        "PILOTHOUSE_DSN": "postgresql://u:hush@db/x",
        "PILOTHOUSE_NAMESPACE": "pilothouse",
        "PILOTHOUSE_INSTALLATION_CONFIGMAP": "pilothouse-installation",
        "PILOTHOUSE_IMAGE": "pilothouse:1",
        "PILOTHOUSE_STORE_URL": "https://gateway",
        "PILOTHOUSE_STORE_CA": str(tmp_path / "ca.crt"),
    }


def test_all_is_read(environment: dict[str, str]) -> None:
    environment |= {"PILOTHOUSE_WATCH_NAMESPACES": "a,b,", "PILOTHOUSE_IMAGE_PULL_POLICY": "Always"}
    assert Settings.of(environment) == Settings(
        dsn="postgresql://u:hush@db/x",
        namespace="pilothouse",
        installation_config_map="pilothouse-installation",
        image="pilothouse:1",
        image_pull_policy="Always",
        store_url="https://gateway",
        store_ca="PEM\n",
        namespaces=("a", "b"),
    )


def test_what_may_be_left_out_has_a_default(environment: dict[str, str]) -> None:
    settings = Settings.of(environment)
    assert settings.image_pull_policy == "IfNotPresent"
    assert settings.namespaces == ()


def test_namespaces_may_have_spaces_between_them(environment: dict[str, str]) -> None:
    assert Settings.of(environment | {"PILOTHOUSE_WATCH_NAMESPACES": " a, b ,, "}).namespaces == ("a", "b")


def test_the_dsn_is_never_shown(environment: dict[str, str]) -> None:
    assert "hush" not in repr(Settings.of(environment))


@pytest.mark.parametrize("name", ["DSN", "NAMESPACE", "INSTALLATION_CONFIGMAP", "IMAGE", "STORE_URL", "STORE_CA"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_is_missing_is_named(environment: dict[str, str], name: str, value: str | None) -> None:
    del environment[f"PILOTHOUSE_{name}"]
    if value is not None:
        environment[f"PILOTHOUSE_{name}"] = value
    with pytest.raises(SettingsError, match=f"PILOTHOUSE_{name} is not set"):
        Settings.of(environment)


def test_a_file_that_cannot_be_read_is_named(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"PILOTHOUSE_STORE_CA: .*none.* cannot be read"):
        Settings.of(environment | {"PILOTHOUSE_STORE_CA": str(tmp_path / "none")})
