import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.errors import ExpressionError
from pilothouse.workflows.expressions.template import Template, render, walk

AWKWARD = [
    '"',
    "'",
    "\\",
    "\\\\n",
    "\n",
    "\r\n\t",
    "{{",
    "}}",
    "{{ x }}",
    "${}",
    "${{",
    "${{ params.x }}",
    "$(VAR)",
    "🇩🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿👩‍👩‍👧",
    "שלום \u202eabc",
    "\ud800",
    "\udfff\ud800",
    "\x00",
    "a\x00b",
    "é\u0301",
    "x" * 65_536,
]

json_values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("${{ a }}", "a"),
        ("${{a}}", "a"),
        ("${{ '}}' }}", "'}}'"),
        ('${{ "}}" }}', '"}}"'),
        (r"${{ '\'}}' }}", r"'\'}}'"),
        (r"${{ r'\' }}", r"r'\'"),
        (r"${{ bR'\' }}", r"bR'\'"),
        ("${{ '''it's }}''' }}", "'''it's }}'''"),
        ('${{ """a"}}\n""" }}', '"""a"}}\n"""'),
        ("${{ {'a':{'b':1}} }}", "{'a':{'b':1}}"),
        ("${{ {'a':{'b':1}}}}", "{'a':{'b':1}}"),
        ("${{ {}}}", "{}"),
        ("${{ '{' }}", "'{'"),
        ("${{ '${{' }}", "'${{'"),
        ("${{ a // it's a comment }}", "a // it's a comment"),
        ("${{\n  a\n  + b\n}}", "a\n  + b"),
        ("${{ a } }}", "a }"),
    ],
)
def test_an_expression_ends_at_its_own_braces(text: str, source: str) -> None:
    template = Template.parse(text)
    assert template.lone is not None
    assert template.lone.source == source
    assert text[template.lone.offset :].startswith(source)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("${{ a", "without the `}}`", 1),
        ("ab ${{ a }", "without the `}}`", 4),
        ("${{ a }} ${{", "without the `}}`", 10),
        ("x\ny ${{ a", "without the `}}`", 3),
        ("${{ 'a }}", "string that starts here", 5),
        ("${{ 'a\n' }}", "string that starts here", 5),
        ("${{ }}", "no expression", 1),
        ("a${{}}b", "no expression", 2),
        ("${{ {'a': 1 }}", "without the `}}`", 1),
    ],
)
def test_a_broken_part_is_refused_with_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError, match=message) as refused:
        Template.parse(text)
    assert refused.value.column == column


@pytest.mark.feature("B37")
@pytest.mark.parametrize("value", [None, True, 0, -(2**70), 1.0, "", "a", [], [1, {"a": None}], {"a": [True]}])
def test_a_lone_expression_keeps_the_type(value: JSON) -> None:
    rendered = Template.parse("${{ x }}").render({"x": value})
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize("text", [" ${{ x }}", "${{ x }} ", "${{ x }}\n", "a${{ x }}", "${{ x }}${{ x }}"])
def test_any_text_around_an_expression_makes_a_string(text: str) -> None:
    template = Template.parse(text)
    assert template.lone is None
    assert template.render({"x": 1}) == text.replace("${{ x }}", "1")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (1.5, "1.5"),
        (1.0, "1.0"),
        ("a b", "a b"),
        ("", ""),
        ([1, "a", None], '[1,"a",null]'),
        ({"b": 1, "a": {"z": "é"}}, '{"a":{"z":"é"},"b":1}'),
    ],
)
def test_in_text_strings_stand_as_they_are_and_other_values_as_canonical_json(value: JSON, shown: str) -> None:
    assert Template.parse("<${{ x }}>").render({"x": value}) == f"<{shown}>"


def test_a_dollar_before_an_expression_is_a_dollar() -> None:
    assert Template.parse("$${{ price }}").render({"price": 5}) == "$5"


@pytest.mark.parametrize("text", ["{{ x }}", "${x}", "${ {x} }", "$", "{", "}}", "$(X)", "a }} b"])
def test_text_without_an_expression_is_left_alone(text: str) -> None:
    assert Template.parse(text).parts == (text,)
    assert render(text, {}) == text


@pytest.mark.feature("B37")
@pytest.mark.parametrize("awkward", AWKWARD, ids=ascii)
def test_awkward_values_pass_unchanged_and_are_not_evaluated_again(awkward: str) -> None:
    tree: JSON = {"lone": "${{ x }}", "text": "<${{ x }}|${{ x }}>", "list": ["${{ x }}"]}
    assert render(tree, {"x": awkward}) == {
        "lone": awkward,
        "text": f"<{awkward}|{awkward}>",
        "list": [awkward],
    }


@pytest.mark.parametrize("awkward", [text for text in AWKWARD if "${{" not in text], ids=ascii)
def test_awkward_literal_text_passes_unchanged(awkward: str) -> None:
    assert Template.parse(f"{awkward}${{{{ x }}}}{awkward}").render({"x": "-"}) == f"{awkward}-{awkward}"


@given(st.lists(st.text().filter(lambda text: "$" not in text and "{" not in text)), st.text())
def test_literals_and_expressions_are_told_apart(literals: list[str], value: str) -> None:
    text = "${{ x }}".join(literals)
    template = Template.parse(text)
    assert len(template.expressions) == max(len(literals) - 1, 0)
    expected = value.join(literals)
    assert template.render({"x": value}) == expected


@given(st.text())
def test_any_string_literal_of_json_can_stand_in_an_expression(text: str) -> None:
    source = json.dumps(text)
    template = Template.parse(f"a ${{{{ {source} }}}} b")
    assert [part.source for part in template.expressions] == [source]


@given(st.text(alphabet="${}'\"\\ax/\n "))
def test_any_text_is_taken_apart_without_loss_or_refused_with_a_column(text: str) -> None:
    rebuilt = _rebuild(text)
    assert rebuilt is None or rebuilt == text


def _rebuild(text: str) -> str | None:
    """The text put together again from its template; None if it was refused at a column inside it."""
    try:
        template = Template.parse(text)
    except ExpressionError as error:
        return None if error.column is not None and 1 <= error.column <= len(text) else "refused elsewhere"
    rebuilt = ""
    for part in template.parts:
        if isinstance(part, str):
            rebuilt += part
        else:
            end = text.index("}}", part.offset + len(part.source)) + 2
            rebuilt = text[: part.offset] + part.source + text[part.offset + len(part.source) : end]
    return rebuilt


@given(json_values, json_values)
def test_rendering_replaces_templates_and_nothing_else(value: JSON, result: JSON) -> None:
    tree: JSON = {"${{ key }}": value, "b": ["${{ x }}", value]}
    assert render(tree, {"x": result}) == {"${{ key }}": render(value, {}), "b": [result, render(value, {})]}


def test_walking_finds_templates_in_order_and_never_in_keys() -> None:
    tree: JSON = {"${{ k }}": ["${{ a }}", {"x": "${{ b }} ${{ c }}"}], "z": "plain", "y": 3, "w": "${{ d }}"}
    found = [(path, [part.source for part in template.expressions]) for path, template in walk(tree)]
    assert found == [
        (("${{ k }}", 0), ["a"]),
        (("${{ k }}", 1, "x"), ["b", "c"]),
        (("w",), ["d"]),
    ]


def test_walking_names_the_place_of_a_broken_template() -> None:
    with pytest.raises(ExpressionError, match=r"^files\[1\]\.text: `\$\{\{` without") as refused:
        list(walk({"files": ["a", {"text": "x ${{ a"}]}))
    assert refused.value.column == 3


def test_walking_refuses_a_bottomless_tree() -> None:
    tree: JSON = "${{ x }}"
    for _ in range(5_000):
        tree = [tree]
    with pytest.raises(ExpressionError, match="nested more than 200 levels"):
        list(walk(tree))


def test_a_long_text_with_many_expressions_is_parsed() -> None:
    template = Template.parse("${{ x }}," * 20_000)
    assert len(template.expressions) == 20_000
