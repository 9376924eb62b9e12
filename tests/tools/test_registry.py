"""The registry: which tools it takes, and what it says about arguments."""

import pytest

from pilothouse.tools.registry import ToolRefused, ToolRegistry
from tests.agents.doubles import ATool

NESTED = {
    "type": "object",
    "properties": {"lines": {"type": "array", "items": {"type": "string", "maxLength": 3}}},
    "required": ["lines"],
}


@pytest.mark.feature("A36")
def test_a_tool_is_found_by_its_name() -> None:
    tool = ATool("one")
    tools = ToolRegistry([tool, ATool("two")])
    assert tools.find("one") is tool
    assert tools.find("three") is None
    assert tools.names == ("one", "two")
    assert [(spec.name, spec.parameters) for spec in tools.specs] == [
        ("one", tool.parameters),
        ("two", tool.parameters),
    ]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolRefused, match="two tools are named `one`"):
        ToolRegistry([ATool("one"), ATool("one")])


@pytest.mark.parametrize("parameters", [{"type": "objekt"}, {"$ref": "https://example.com/schema.json"}])
def test_parameters_that_are_no_schema_or_lead_elsewhere_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(ToolRefused, match="the parameters of the tool `bad` are no valid JSON schema"):
        ToolRegistry([ATool("bad", parameters=parameters)])


def test_problems_name_their_place() -> None:
    tools = ToolRegistry([ATool("write", parameters=NESTED)])
    assert tools.problems("write", {"lines": ["a"]}) == ""
    assert tools.problems("write", {"lines": ["a", 1]}) == 'arguments.lines[1]: 1 is not of type "string"'
    assert tools.problems("write", {}) == 'arguments: "lines" is a required property'


def test_many_and_long_problems_are_cut() -> None:
    tools = ToolRegistry([ATool("write", parameters=NESTED)])
    told = tools.problems("write", {"lines": ["x" * 100_000] * 100})
    assert told.count("is longer than 3 characters") == 5
    assert len(told) < 2_000
