"""The kubeconfig of a person, read as kubectl reads it: several files as one, paths relative to their own file."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError
from msgspec import ValidationError

from pilothouse.store.errors import StoreUnusable

_DEFAULT = "~/.kube/config"

_FILES = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}
"""Fields that name files."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context with its cluster and user. `cluster` and `user` are the fields as they were written, for those that
    lightkube does not know."""

    config: SingleConfig
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.config.context_name


def choose(kubeconfig: Path | None, context: str | None) -> Chosen:
    """The context of that name, or the current one. Raises StoreUnusable."""
    paths = [kubeconfig] if kubeconfig else _usual_paths()
    merged = _merged(paths, must=kubeconfig is not None)
    names = [str(entry["name"]) for entry in merged["contexts"]]
    wanted = context or merged["current-context"]
    if wanted is None:
        raise StoreUnusable(f"the kubeconfig has no current context; name one with --context: {_listed(names)}")
    if wanted not in names:
        raise StoreUnusable(f"the kubeconfig has no context `{wanted}`; it has: {_listed(names)}")
    try:
        config = KubeConfig.from_dict(merged, fname=paths[0]).get(wanted)
    except (ConfigError, ValidationError, KeyError, TypeError) as error:
        raise StoreUnusable(f"context `{wanted}` of the kubeconfig cannot be used: {_reason(error)}") from None
    assert config is not None  # noqa: S101 - it was named
    return Chosen(
        config, _named(merged, "cluster", config.context.cluster), _named(merged, "user", config.context.user)
    )


def _usual_paths() -> list[Path]:
    given = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [Path(part) for part in given] or [Path(_DEFAULT).expanduser()]


def _merged(paths: Sequence[Path], must: bool) -> dict[str, Any]:
    """The files as one: what comes first wins. Of several, those that are not there are passed over."""
    merged: dict[str, Any] = {"clusters": [], "contexts": [], "users": [], "current-context": None}
    found = [path for path in paths if must or path.is_file()]
    if not found:
        raise StoreUnusable(f"there is no kubeconfig at {' or '.join(map(str, paths))}; name one with --kubeconfig")
    for path in found:
        document = _read(path)
        merged["current-context"] = merged["current-context"] or document.get("current-context") or None
        for kind in ("cluster", "context", "user"):
            there = {entry["name"] for entry in merged[f"{kind}s"]}
            merged[f"{kind}s"] += [entry for entry in _entries(document, kind, path) if entry["name"] not in there]
    return merged


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreUnusable(f"the kubeconfig {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError):
        raise StoreUnusable(f"the kubeconfig {path} is no YAML") from None
    if not isinstance(document, dict):
        raise StoreUnusable(f"the kubeconfig {path} holds no object")
    return document


def _entries(document: Mapping[str, Any], kind: str, path: Path) -> list[dict[str, Any]]:
    """The named entries of one kind, their paths made absolute."""
    entries = document.get(f"{kind}s") or []
    if not isinstance(entries, list) or not all(_is_entry(entry, kind) for entry in entries):
        raise StoreUnusable(f"the kubeconfig {path} has an entry in `{kind}s` without a `name` or a `{kind}`")
    return [{"name": entry["name"], kind: _located(entry[kind], kind, path.absolute().parent)} for entry in entries]


def _is_entry(entry: object, kind: str) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get(kind), dict)


def _located(fields: Mapping[str, Any], kind: str, folder: Path) -> dict[str, Any]:
    files = {name: str(folder / fields[name]) for name in _FILES.get(kind, ()) if fields.get(name)}
    located = {**fields, **files}
    match fields.get("exec"):
        case {"command": str(command)} if kind == "user" and os.sep in command:
            located["exec"] = {**fields["exec"], "command": str(folder / command)}
    return located


def _named(merged: Mapping[str, Any], kind: str, name: str | None) -> Mapping[str, Any]:
    return next((entry[kind] for entry in merged[f"{kind}s"] if entry["name"] == name), {})


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none at all"


def _reason(error: Exception) -> str:
    return f"it refers to {error}, which is not there" if isinstance(error, KeyError) else str(error)
