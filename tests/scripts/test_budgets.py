"""The size budgets: what counts as a function's lines, and what is over budget."""

from pathlib import Path
from textwrap import dedent

import pytest

from scripts import budgets
from scripts.budgets import Size


def sizes(source: str) -> dict[str, int]:
    return {size.where: size.lines for size in budgets.function_sizes(dedent(source), "m.py")}


def test_counts_from_def_to_the_last_line_without_decorators_and_docstring() -> None:
    source = '''
        @decorator
        @another
        def one(
            argument,
        ):
            """Says
            much."""

            # a comment counts
            return argument
    '''
    assert sizes(source) == {"m.py:one": 6}


def test_counts_a_function_inside_another_for_itself_and_for_the_outer_one() -> None:
    source = """
        class Outer:
            async def method(self):
                def helper():
                    return 1
                return helper
    """
    assert sizes(source) == {"m.py:Outer.method": 4, "m.py:Outer.method.helper": 2}


def test_finds_functions_below_any_statement() -> None:
    source = """
        if condition:
            def inside():
                return 1
    """
    assert sizes(source) == {"m.py:inside": 2}


def test_leaves_out_declarations_so_that_they_cannot_lower_the_median() -> None:
    source = '''
        class Port(Protocol):
            def documented(self):
                """A docstring is no body."""
            def bare(self): ...
            def both(self):
                """A docstring."""
                ...
            def real(self):
                return None
    '''
    assert sizes(source) == {"m.py:Port.real": 2}


@pytest.mark.parametrize(("lines", "over"), [(budgets.FUNCTION_LIMIT, False), (budgets.FUNCTION_LIMIT + 1, True)])
def test_names_the_function_over_the_limit(lines: int, over: bool) -> None:
    functions = [Size("a.py:long", lines), *[Size("a.py:short", 1)] * 9]
    expected = [f"a.py:long: {lines} lines (limit 35)"] if over else []
    assert budgets.violations([], functions) == expected


@pytest.mark.parametrize(("lines", "over"), [(budgets.FILE_LIMIT, False), (budgets.FILE_LIMIT + 1, True)])
def test_names_the_file_over_the_limit(lines: int, over: bool) -> None:
    expected = [f"a.py: {lines} lines (limit 500)"] if over else []
    assert budgets.violations([Size("a.py", lines)], []) == expected


def test_refuses_a_median_over_the_limit() -> None:
    assert budgets.violations([], [Size("f", 9), Size("g", 9), Size("h", 30)]) == []
    assert budgets.violations([], [Size("f", 9), Size("g", 10)]) == [
        "all functions: median 9.5 lines (limit 9)",
    ]


def test_measures_a_checkout_and_exits_1_naming_file_function_and_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "engine" / "pilothouse"
    package.mkdir(parents=True)
    (package / "fine.py").write_text("def f():\n    return 1\n" * 3)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_long.py").write_text("# line\n" * 301)
    assert budgets.main(tmp_path) == 0
    assert "1 over the target of 300" in capsys.readouterr().out

    (package / "long.py").write_text("def long():\n" + "    call()\n" * 40)
    assert budgets.main(tmp_path) == 1
    assert "over budget: engine/pilothouse/long.py:long: 41 lines (limit 35)" in capsys.readouterr().out


def test_holds_only_files_of_tests_to_the_limit_for_files(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_it():\n" + "    call()\n" * 40)
    assert budgets.main(tmp_path) == 0
