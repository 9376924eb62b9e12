"""The objects of a set of manifest files, as `kubectl apply -f` would read them, and what is wrong with them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pilothouse.api.agent import Agent
from pilothouse.api.manifest import ManifestError
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow
from pilothouse.cli.configdata import ConfigMap, Secret
from pilothouse.cli.documents.document import Document, Refused
from pilothouse.cli.documents.reader import read_documents
from pilothouse.cli.finding import Finding, Source
from pilothouse.cli.kinds import Object, load_object

MAX_FILE = 3 * 1024 * 1024
"""Bytes of one file."""

T = TypeVar("T", Workflow, Agent, Pack, ToolApproval, ConfigMap, Secret)

_STDIN = Path("-")
_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Manifest:
    """One object, where it stands, and its namespace."""

    object: Object
    source: Source
    namespace: str

    @property
    def identity(self) -> tuple[str, str, str | None]:
        """Kind, namespace and name; no name where the server is to generate it."""
        return self.object.kind, self.namespace, self.object.metadata.name


@dataclass(frozen=True)
class Manifests:
    """The objects in the order of the files. `findings` holds whatever kept others from being read."""

    all: list[Manifest] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def workflows(self) -> list[Workflow]:
        return [manifest.object for manifest in self.all if isinstance(manifest.object, Workflow)]

    def named(self, kind: type[T], namespace: str) -> dict[str, T]:
        """The objects of a kind in a namespace, by name."""
        found = (manifest for manifest in self.all if manifest.namespace == namespace)
        return {
            manifest.object.metadata.name: manifest.object
            for manifest in found
            if isinstance(manifest.object, kind) and manifest.object.metadata.name is not None
        }


def read(paths: Iterable[str | Path], namespace: str = "default") -> Manifests:
    """Every object of the files: one or more documents a file, `-` for standard input, a directory for the .yaml,
    .yml and .json files in it. `namespace` is that of objects which name none.

    Whatever users got wrong is a finding; nothing is raised for it.
    """
    found = Manifests()
    files = (file for path in map(Path, paths) for file in _files(path, found))
    first: dict[tuple[str, str, str | None], Manifest] = {}
    for manifest in (manifest for file in files for manifest in _read_file(file, namespace, found)):
        twin = first.setdefault(manifest.identity, manifest)
        if twin is manifest or manifest.object.metadata.name is None:
            found.all.append(manifest)
        else:
            found.findings.append(_twice(manifest, twin))
    return found


def _files(path: Path, found: Manifests) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    try:
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and not file.is_dir())
    except OSError as error:
        found.findings.append(_unreadable(path, error))
        return []
    if not files:
        problem = Problem("", f"holds no {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} file")
        found.findings.append(Source(str(path)).finding(problem))
    return files


def _unreadable(path: Path, error: OSError) -> Finding:
    return Source(str(path)).finding(Problem("", f"cannot be read: {error.strerror or error}"))


def _read_file(path: Path, namespace: str, found: Manifests) -> Iterator[Manifest]:
    name = "stdin" if path == _STDIN else str(path)
    try:
        documents, refused = _documents(_bytes(path), name)
    except OSError as error:
        found.findings.append(_unreadable(path, error))
        return
    except Refused as error:
        documents, refused = [], error
    several = len(documents) > 1 or (refused is not None and refused.document > 1)
    for document in documents:
        source = Source(name, document.number if several else None, document)
        yield from _read_document(document, source, namespace, found)
    if refused is not None:
        found.findings.append(Finding.of_refused(name, refused, several))


def _documents(data: bytes, name: str) -> tuple[list[Document], Refused | None]:
    """The documents that can be read, and why there are no more of them."""
    documents: list[Document] = []
    try:
        for document in read_documents(data, name):
            documents.append(document)  # one by one: those before a bad one count
    except Refused as error:
        return documents, error
    if all(document.value is None for document in documents):
        return [], Refused("holds no document")
    return documents, None


def _bytes(path: Path) -> bytes:
    if path == _STDIN:
        data = sys.stdin.buffer.read(MAX_FILE + 1)
    else:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise Refused(f"is larger than {MAX_FILE // 1024 // 1024} MiB: split it")
    return data


def _read_document(document: Document, source: Source, namespace: str, found: Manifests) -> Iterator[Manifest]:
    if document.value is None:
        return  # nothing, or only a comment, between two separators
    try:
        loaded = load_object(document.value)
    except ManifestError as error:
        found.findings.extend(map(source.finding, error.problems))
        return
    yield Manifest(loaded, source, loaded.metadata.namespace or namespace)


def _twice(manifest: Manifest, twin: Manifest) -> Finding:
    kind, _, name = manifest.identity
    return manifest.source.finding(Problem("metadata.name", f"there is a {kind} `{name}` in {twin.source} already"))
