"""What users get wrong is told in one clear line, and never in a traceback."""

from pathlib import Path

import pytest

from pilothouse.cli.validate import SHOWN, validate
from tests.cli.bad_files import BAD_FILES

BAD = Path(__file__).parent / "bad"
HEAD = "apiVersion: pilothouse.dev/v1alpha1\nkind: Workflow\nmetadata: {name: release}\nspec:\n"


CYCLES = pytest.mark.feature("B31")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=CYCLES) if "cycle" in name else name for name in sorted(BAD_FILES)]
)
async def test_each_bad_file_gets_exactly_its_lines(name: str) -> None:
    path = str(BAD / f"{name}.yaml")
    lines = await validate([path])
    expected = [part.replace("{file}", path) for part in BAD_FILES[name]]
    assert len(lines) == len(expected), lines
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith(path)
        assert part in line
        assert "\n" not in line


def test_every_bad_file_is_listed() -> None:
    assert {path.stem for path in BAD.iterdir()} == set(BAD_FILES)
    assert len(BAD_FILES) >= 60


async def _lines(tmp_path: Path, data: bytes | str, name: str = "a.yaml") -> list[str]:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return [line.removeprefix(str(path)) for line in await validate([path])]


async def test_a_spec_of_two_mebibytes_is_too_large(tmp_path: Path) -> None:
    text = (
        HEAD + "  steps:\n" + "".join(f"  - {{name: s{i}, transform: {{value: {'x' * 8000}}}}}\n" for i in range(256))
    )
    assert await _lines(tmp_path, text) == [":4: spec: is larger than 256 KiB"]


async def test_a_file_beyond_three_mebibytes_is_not_read(tmp_path: Path) -> None:
    assert await _lines(tmp_path, "#" * (3 * 1024 * 1024 + 1)) == [": is larger than 3 MiB: split it"]


async def test_a_spec_made_huge_by_aliases_is_too_large(tmp_path: Path) -> None:
    repeated = ", ".join(["*long"] * 1000)
    text = HEAD + f"  steps: [{{name: a, transform: {{value: [&long {'x' * 100_000}, {repeated}]}}}}]\n"
    assert await _lines(tmp_path, text) == [":4: spec: is larger than 256 KiB"]


async def test_thousands_of_small_values_are_counted(tmp_path: Path) -> None:
    text = HEAD + "  steps: [{name: a, transform: {value: [" + "1," * 200_000 + "]}}]\n"
    [line] = await _lines(tmp_path, text)
    assert line.endswith("the document holds more than 100,000 values, aliases put in")


async def test_thousands_of_documents_are_counted(tmp_path: Path) -> None:
    [line] = await _lines(tmp_path, "---\n" * 5_000)
    assert "holds more than 1,000 documents" in line


async def test_only_the_first_problems_of_a_document_are_told(tmp_path: Path) -> None:
    lines = await _lines(tmp_path, HEAD + "".join(f"  x{i}: 1\n" for i in range(18_000)))
    assert len(lines) == SHOWN + 1
    assert lines[-1].endswith(": and more problems like these")


async def test_two_thousand_expressions_are_enough(tmp_path: Path) -> None:
    values = ", ".join(f'"${{{{ {i} }}}}"' for i in range(2_001))
    [line] = await _lines(tmp_path, HEAD + f"  steps: [{{name: a, transform: {{value: [{values}]}}}}]\n")
    assert line == ":4: spec: holds more than 2,000 expressions: split the Workflow"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ": is empty: it holds no document"),
        (b" \n\n", ": is empty: it holds no document"),
        (b"---\n---\n", ": holds no document"),
        (b"kind: Caf\xe9\n", ": is not UTF-8: byte 0xe9 at offset 9"),
        (b"\xef\xbb\xbfkind: \xff\n", ": is not UTF-8: byte 0xff at offset 9"),
        ("kind: Agent\n".encode("utf-16"), ": is not UTF-8: byte 0xff at offset 0"),
        (b"kind: a\nname: b\0c\n", ":2: holds the control character U+0000 (column 8)"),
        (b"kind: \x1b[31mAgent\n", ":1: holds the control character U+001B (column 7)"),
        (b'a: "\\ud800"\n', ":1: is not valid YAML: found invalid Unicode character escape code (column 7)"),
    ],
)
async def test_what_is_no_text_is_refused_with_its_place(tmp_path: Path, data: bytes, expected: str) -> None:
    assert await _lines(tmp_path, data) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind": "Agent",', ":1: is not valid JSON: Expecting property name enclosed in double quotes (column 18)"),
        ('{"kind": 1, "kind": 2}', ': the key "kind" stands twice in one mapping'),
        ('{"a": NaN}', ": holds the number NaN, which JSON does not have"),
        ('{"a": 1e999}', ": holds the number 1e999, which JSON does not have"),
        ('{"a": ' + "9" * 5000 + "}", ": holds " + "9" * 40 + "…, which does not fit into 64 bits: quote it"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", ": is nested deeper than 100 levels"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", ": is nested deeper than 100 levels"),
        ('{"a": [' + "1," * 200_000 + "1]}", ": holds more than 100,000 values"),
        ('{"kind": "Agnet"}', ": kind: must be one of Workflow, Agent, Pack, ToolApproval, ConfigMap, Secret; "
         'found "Agnet"; did you mean `Agent`?'),
    ],
)  # fmt: skip
async def test_json_keeps_the_same_bounds(tmp_path: Path, text: str, expected: str) -> None:
    assert await _lines(tmp_path, text, "a.json") == [expected]


async def test_a_document_before_a_broken_one_is_still_checked(tmp_path: Path) -> None:
    first = HEAD + "  paralelism: 3\n  steps: [{name: a, transform: {value: 1}}]\n"
    assert await _lines(tmp_path, first + "---\na: [\n") == [
        ":5: document 1: spec.paralelism: unknown field; did you mean `parallelism`?",
        ":9: document 2: is not valid YAML: did not find expected node content (column 1)",
    ]


async def test_a_broken_document_does_not_make_references_to_it_wrong(tmp_path: Path) -> None:
    agent = "apiVersion: pilothouse.dev/v1alpha1\nkind: Agent\nmetadata: {name: writer}\nspec: {modle: {}}\n"
    text = agent + "---\n" + HEAD + "  steps: [{name: a, invokeAgent: {agentRef: {name: writer}}}]\n"
    assert await _lines(tmp_path, text) == [":4: document 1: spec.modle: unknown field; did you mean `model`?"]


async def test_paths_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    missing = tmp_path / "missing.yaml"
    assert await validate([missing, tmp_path / "empty"]) == [
        f"{missing}: cannot be read: No such file or directory",
        f"{tmp_path / 'empty'}: holds no .yaml, .yml or .json file",
    ]


async def test_no_value_of_a_secret_is_ever_shown(tmp_path: Path) -> None:
    head = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
    bodies = [
        "data: {k: hunter2!}",
        "data: hunter2!",
        "data: {k: hunter2!, k: hunter2!}",
        "data: {k: 'hunter2!",
        "stringData: [hunter2!]",
        "stringData: {k: {deep: hunter2!}}",
        "stringdata: {k: hunter2!}",
    ]
    for body in bodies:
        lines = await _lines(tmp_path, head + body + "\n")
        assert len(lines) == 1
        assert "hunter2" not in lines[0]
