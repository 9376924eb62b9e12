"""The size budgets of this project, checked over its source by `make check`.

A file has at most 500 lines; past 300 it is counted as a warning. A function has at most 35 lines, and half of all
functions at most 9. Complexity is ruff's part (C901).

What counts as a function's lines: from its `def` to its last line, blank lines and comments included; its decorators
and its docstring are left out. A function inside another counts for itself and as lines of the outer one. A mere
declaration (a protocol's method, an overload) has no size: it is left out, so that it cannot lower the median.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FILE_TARGET = 300
FILE_LIMIT = 500
FUNCTION_LIMIT = 35
FUNCTION_MEDIAN = 9

MEASURED_FOR_FUNCTIONS = ("engine", "operator", "scripts")
MEASURED_FOR_FILES = (*MEASURED_FOR_FUNCTIONS, "tests", "bench", "e2e")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Size:
    """The number of lines of a file, or of a function in it (`where` is `path` or `path:name`)."""

    where: str
    lines: int


def function_sizes(source: str, path: str) -> Iterator[Size]:
    """Yields the size of every function of a module; its name is qualified by the classes and functions around it."""
    yield from _sizes_below(ast.parse(source), f"{path}:")


def _sizes_below(node: ast.AST, prefix: str) -> Iterator[Size]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            if not _is_declaration(child):
                yield Size(prefix + child.name, _lines(child))
            yield from _sizes_below(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _sizes_below(child, f"{prefix}{child.name}.")
        else:
            yield from _sizes_below(child, prefix)


def _lines(function: Function) -> int:
    return _span(function) - (_span(function.body[0]) if _has_docstring(function) else 0)


def _span(node: ast.stmt) -> int:
    assert node.end_lineno is not None  # noqa: S101  # ast.parse always sets it
    return node.end_lineno - node.lineno + 1


def _has_docstring(function: Function) -> bool:
    return ast.get_docstring(function, clean=False) is not None


def _is_declaration(function: Function) -> bool:
    body = function.body[1:] if _has_docstring(function) else function.body
    return all(_is_ellipsis(statement) for statement in body)


def _is_ellipsis(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is Ellipsis
    )


def violations(files: list[Size], functions: list[Size]) -> list[str]:
    """Returns one line for each budget that is broken: what, how large, and the limit."""
    sizes = [function.lines for function in functions]
    broken = [f"{f.where}: {f.lines} lines (limit {FILE_LIMIT})" for f in files if f.lines > FILE_LIMIT]
    broken += [f"{f.where}: {f.lines} lines (limit {FUNCTION_LIMIT})" for f in functions if f.lines > FUNCTION_LIMIT]
    if sizes and median(sizes) > FUNCTION_MEDIAN:
        broken.append(f"all functions: median {median(sizes):g} lines (limit {FUNCTION_MEDIAN})")
    return broken


def table(files: list[Size], functions: list[Size]) -> str:
    """Returns what was measured, one row a budget."""
    nothing = Size("none", 0)
    largest_file = max(files, key=lambda size: size.lines, default=nothing)
    largest_function = max(functions, key=lambda size: size.lines, default=nothing)
    middle = median(size.lines for size in functions) if functions else 0
    over_target = sum(size.lines > FILE_TARGET for size in files)
    return "\n".join(
        (
            f"files      {len(files):5}  longest {largest_file.lines} of {FILE_LIMIT} ({largest_file.where}),"
            f" {over_target} over the target of {FILE_TARGET}",
            f"functions  {len(functions):5}  longest {largest_function.lines} of {FUNCTION_LIMIT}"
            f" ({largest_function.where}), median {middle:g} of {FUNCTION_MEDIAN}",
        )
    )


def _modules(root: Path, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield str(path.relative_to(root)), path.read_text(encoding="utf-8")


def main(root: Path) -> int:
    """Prints the table and the broken budgets of the checkout at `root`; returns the exit code, 1 if any is broken."""
    files = [Size(path, len(text.splitlines())) for path, text in _modules(root, MEASURED_FOR_FILES)]
    functions = [size for path, text in _modules(root, MEASURED_FOR_FUNCTIONS) for size in function_sizes(text, path)]
    print(table(files, functions))
    broken = violations(files, functions)
    for line in broken:
        print(f"over budget: {line}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
