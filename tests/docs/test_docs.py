"""The documentation says what the code says."""

from pathlib import Path

import pytest

from pilothouse.api import conditions
from pilothouse.api.base import ApiModel
from pilothouse.cli.manifests import read
from pilothouse.cli.validate import validate
from pilothouse.records.events import EventType
from pilothouse.records.failures import FailureCode
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.workflows.checks.support import KINDS_NOT_YET, NOT_YET
from tests.docs.models import Described, described
from tests.docs.pages import DOCS, PAGES, ROOT, SPEC, Page, rows

NOT_YET_MARK = "**Not supported yet"

MANIFESTS = [
    pytest.param(text, id=f"{path.relative_to(ROOT)}-{number}")
    for path in PAGES
    for number, text in enumerate(Page.of(path).blocks("yaml"), 1)
    if "apiVersion:" in text
]

by_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
by_model = pytest.mark.parametrize("one", list(described()), ids=lambda one: f"{one.page}-{one.section}")


def _section(one: Described) -> str:
    section = Page.of(SPEC / one.page).section(one.section)
    assert section is not None, f"docs/spec/v1alpha1/{one.page} has no heading `{one.section}` for {one.model.__name__}"
    return section


def _fields(model: type[ApiModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@pytest.mark.parametrize("text", MANIFESTS)
async def test_a_manifest_in_the_docs_is_valid_or_of_a_kind_that_is_said_not_to_run(text: str, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(text, encoding="utf-8")
    manifests = read([file])
    assert [str(finding) for finding in manifests.findings] == []
    refused = [manifest for manifest in manifests.all if isinstance(manifest.object, KINDS_NOT_YET)]
    problems = await validate([file])
    assert len(problems) == len(refused), problems
    assert all(problem.endswith("is not supported yet") for problem in problems)


@by_page
def test_a_link_leads_to_a_file_and_a_heading_that_are_there(path: Path) -> None:
    for target in Page.of(path).links():
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        assert not anchor or anchor in Page.of(there).anchors(), target


def test_every_page_is_listed_in_the_index() -> None:
    index = DOCS / "README.md"
    listed = {(index.parent / link).resolve() for link in Page.of(index).links() if "://" not in link}
    missing = set(DOCS.rglob("*.md")) - listed - {index}
    assert not missing, missing


@by_page
def test_a_file_or_a_test_that_is_named_is_there(path: Path) -> None:
    files = (file for folder in ("tests", "e2e") for file in (ROOT / folder).rglob("*.py"))
    sources = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for text in Page.of(path).quoted():
        if text.startswith("test_") and text.isidentifier():
            assert f"def {text}(" in sources, text
        elif text.endswith((".py", ".sql", ".lock")) and "/" in text and "*" not in text and not text.startswith("/"):
            assert any((base / text).exists() for base in (ROOT, ROOT / "engine" / "pilothouse")), text


@by_model
def test_a_model_s_section_names_its_fields_and_no_others(one: Described) -> None:
    named = set(rows(_section(one)))
    fields = set(_fields(one.model))
    assert not fields - named, f"missing: {sorted(fields - named)}"
    assert not named - fields, f"{one.model.__name__} has no such field: {sorted(named - fields)}"


@by_model
def test_a_field_is_said_to_be_unsupported_exactly_if_it_is_refused(one: Described) -> None:
    refused = {entry.partition(":")[0] for entry in NOT_YET.get(one.model, ())}
    table = rows(_section(one))
    assert {field for field in _fields(one.model) if NOT_YET_MARK in table[field]} == refused


@by_model
def test_a_default_is_the_one_of_the_model(one: Described) -> None:
    table = rows(_section(one))
    for name, field in one.model.model_fields.items():
        written = table[field.alias or name].split("|")[1].strip()
        if field.is_required():
            assert written == "required", field.alias
        elif isinstance(field.default, str | int | float):
            default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
            assert written == f"`{default}`", field.alias
        else:
            assert written == "", field.alias


@pytest.mark.parametrize("kind", KINDS_NOT_YET, ids=lambda kind: kind.__name__)
def test_a_kind_that_nothing_runs_says_so_at_once(kind: type[ApiModel]) -> None:
    title, beginning, *_ = Page.of(SPEC / f"{kind.__name__.lower()}.md").text.split("\n\n")
    assert title == f"# {kind.__name__}"
    assert beginning.startswith("**The kind is defined, but nothing runs it yet.**")


@pytest.mark.parametrize("words", [FailureCode, RunState, StepState, AttemptState, EventType, Shutdown])
def test_every_code_state_and_event_is_explained(words: type[FailureCode]) -> None:
    quoted = Page.of(SPEC / "workflow.md").quoted()
    assert [word.value for word in words if word.value not in quoted] == []


def test_every_condition_and_reason_is_explained_and_no_other() -> None:
    words = {value for name, value in vars(conditions).items() if name.isupper() and isinstance(value, str)}
    explained: set[str] = set()
    for path in SPEC.glob("*.md"):
        _, _, below = Page.of(path).text.partition("\n### Conditions\n")
        cells = [line.split("|")[1] for line in below.splitlines() if line.startswith("| `")]
        explained |= {word.strip(" `") for cell in cells for word in cell.split(",")}
    assert explained == words
