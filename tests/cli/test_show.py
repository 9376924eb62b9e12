"""`get`, `describe`, `events` and `logs`: what is recorded, and what cannot be done to the reader's terminal."""

import json
import re
import shlex
from collections import Counter

import pytest
import yaml

from tests.cli.command import Cli

HOSTILE = r"""
  steps:
    - name: a
      executeCode:
        language: python
        code: |
          import json, os, sys
          raw = b"\033[31mred\007 \302\233m ok\r\n\377\000 rest"
          sys.stdout.buffer.write(raw)
          sys.stderr.buffer.write(raw)
          with open(os.environ["PILOTHOUSE_OUTPUT"], "w") as file:
              json.dump({"v": "\033]0;x\007\0\ud800"}, file)
    - name: b
      needs: [a]
      runCommand: {command: [sh, -c, 'printf "\033[2Jbad" >&2; exit %s']}
    - {name: c, transform: {value: "${{ steps.a.outputs }}"}}
  outputs: [{name: v, value: "${{ steps.a.outputs.v }}"}, {name: c, value: "${{ steps.c.outputs.value }}"}]
"""

LARGE = """
  params: [{name: size, type: string}]
  steps:
    - name: a
      executeCode:
        language: python
        args: ["${{ params.size }}"]
        code: |
          import json, os, sys
          with open(os.environ["PILOTHOUSE_OUTPUT"], "w") as file:
              json.dump({"v": "x" * int(sys.argv[1])}, file)
    - {name: b, transform: {value: {of: "${{ steps.a.outputs.v }}"}}}
  outputs: [{name: v, value: "${{ steps.b.outputs.value }}"}]
"""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.feature("B44")
async def test_nothing_that_a_step_printed_reaches_the_terminal_as_a_command(cli: Cli) -> None:
    run = await cli("run", "-f", cli.workflow(HOSTILE % 1))
    assert run.status == 1
    for shown in (run, await cli("describe", "w"), await cli("logs", "w")):
        assert not CONTROL.search(shown.out + shown.err)
    assert "\n[b] \\x1b[2Jbad\n" in shown.out


async def test_nul_characters_and_surrogates_in_outputs_are_kept_as_they_are(cli: Cli) -> None:
    result = await cli("run", "-f", cli.workflow(HOSTILE % 0), "-o", "json")
    outputs = {output["name"]: output["value"] for output in result.data["outputs"]}
    assert outputs["v"] == outputs["c"]["v"] == "\033]0;x\007\0\ud800"
    assert outputs["c"]["stdout"] == "\033[31mred\007 \u009bm ok\r\n\ufffd\0 rest"
    shown = await cli("get", "w", "-o", "yaml")
    assert yaml.safe_load(shown.out) == result.data
    assert not CONTROL.search(shown.out)


async def test_values_of_a_mebibyte_pass_through_and_larger_ones_are_refused(cli: Cli) -> None:
    file = cli.workflow(LARGE)
    fits = 1024 * 1024 - len('{"v": ""}')
    result = await cli("run", "-f", file, "-o", "json", "-p", f"size={fits}")
    assert result.status == 0, result.err
    assert result.data["outputs"] == [{"name": "v", "value": {"of": "x" * fits}}]
    larger = await cli("run", "-f", file, "-p", f"size={fits + 1}")
    assert larger.status == 1
    assert "F-VAL step `a` failed: $PILOTHOUSE_OUTPUT holds more than 1,048,576 bytes" in larger.out


async def test_logs_follow_a_command_line_by_line_and_end_with_the_run(cli: Cli) -> None:
    script = "printf 'one\\ntw'; echo begun >> effects; until test -e go; do sleep 0.02; done; printf 'o\\nthree'"
    code = f"cd {shlex.quote(str(cli.folder))}; {script}"
    file = cli.workflow(f"  steps: [{{name: a, runCommand: {{command: [sh, -c, {json.dumps(code)}]}}}}]")
    async with cli.begun("run", "-f", file) as run:
        await run.until("StepStarted")
        async with cli.begun("logs", "-f", "w") as logs:
            assert await logs.until_out("one") == "[a] one\n"
            (cli.folder / "go").touch()
            rest = await logs.end()
        assert (await run.end()).status == 0
    assert (rest.status, rest.out) == (0, "[a] two\n[a] three\n")
    assert (await cli("logs", "w", "a")).out == "one\ntwo\nthree\n"


async def test_runs_are_found_by_name_number_and_id(cli: Cli) -> None:
    file = cli.workflow("  steps: [{name: a, transform: {value: 1}}]")
    first = (await cli("run", "-f", file, "-o", "json")).data
    await cli("run", "-f", file)
    found = [(await cli("get", name, "-o", "json")).data["run"]["number"] for name in ("w", "w/1", first["run"]["id"])]
    assert found == [2, 1, 1]
    table = (await cli("get")).out.splitlines()
    assert [row.split()[:3] for row in table] == [
        ["RUN", "STATE", "PROGRESS"],
        ["w/2", "Succeeded", "1/1"],
        ["w/1", "Succeeded", "1/1"],
    ]


async def test_an_id_that_could_be_of_several_runs_is_refused_with_their_names(cli: Cli) -> None:
    """Ids begin with the time of about a minute; of three runs that follow each other two have the same."""
    file = cli.workflow("  steps: [{name: a, transform: {value: 1}}]")
    begin = [(await cli("run", "-f", file, "-o", "json")).data["run"]["id"][:8] for _ in range(3)]
    [(common, _)] = Counter(begin).most_common(1)
    names = ", ".join(f"w/{number}" for number in (3, 2, 1) if begin[number - 1] == common)
    ambiguous = await cli("get", common)
    assert ambiguous.status == 2
    assert f"several runs have an id that begins with {common}: {names}" in ambiguous.err


MISSING = [
    (("get", "nope"), "there is no run `nope` in namespace default; see `pilothouse get`"),
    (("logs", "w", "nope"), "the run has no step `nope`; its steps are: a"),
    (("describe", "w/1", "-n", "other"), "there is no run `w/1` in namespace other; see `pilothouse get`"),
]


async def test_what_is_not_there_is_said_with_what_is(cli: Cli) -> None:
    await cli("run", "-f", cli.workflow("  steps: [{name: a, transform: {value: 1}}]"))
    for arguments, says in MISSING:
        result = await cli(*arguments)
        assert (result.status, result.out, result.err) == (2, "", f"pilothouse: {says}\n")


async def test_describe_tells_all_of_a_run(cli: Cli) -> None:
    spec = "  params: [{name: who, type: string, default: Ann}]\n  deadline: 1h\n"
    spec += "  steps: [{name: a, runCommand: {command: ['false']}, retry: {attempts: 2, delay: 1ms}}]"
    await cli("run", "-f", cli.workflow(spec))
    told = (await cli("describe", "w")).out
    for line in (
        r"Run:        w/1",
        r"State:      Failed",
        r'Param:      who = "Ann"',
        r"Failure:    F-EXE step `a` failed: the command ended with exit code 1",
        r"a      runCommand   Failed   2          \S+   F-EXE the command ended with exit code 1",
        r"a      1                   Failed   \S+ +F-EXE the command ended with exit code 1",
        r"\d\d:\d\d:\d\d  a                 StepRetrying    in 0.\d+s after F-EXE .*",
        r"\d\d:\d\d:\d\d  -                 RunFailed       F-EXE step `a` failed: .*",
    ):
        assert re.search(f"^{line}$", told, re.MULTILINE), f"{line} is not in\n{told}"


async def test_a_reader_that_goes_away_ends_the_command_quietly(cli: Cli) -> None:
    await cli("run", "-f", cli.workflow("  steps: [{name: a, transform: {value: 1}}]"))
    async with cli.begun("get", unread=True) as command:
        result = await command.end()
    assert (result.status, result.err) == (141, "")
