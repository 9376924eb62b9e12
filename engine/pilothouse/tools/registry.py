"""The tools of one agent, by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pilothouse.models.provider import ToolSpec
from pilothouse.tools.schema import Schema, SchemaRefused
from pilothouse.tools.tool import Tool


class ToolRefused(ValueError):  # noqa: N818 - the outcome, as the caller reports it
    """A tool cannot be registered: its name is taken, or its parameters are no JSON schema."""


@dataclass(frozen=True, slots=True)
class _Registered:
    tool: Tool
    schema: Schema
    spec: ToolSpec


class ToolRegistry:
    """Finds tools and checks arguments. Raises ToolRefused for a duplicate name or a bad schema.

    A source whose tools change while the agent runs, as an MCP server does, replaces its own; the model is shown the
    new ones from its next turn on.
    """

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._sources: dict[str, dict[str, _Registered]] = {}
        self.replace("", tools)

    def replace(self, source: str, tools: Sequence[Tool]) -> None:
        """From now on the tools of the source are these. Raises ToolRefused; then nothing has changed."""
        taken = {name for other, registered in self._sources.items() if other != source for name in registered}
        fresh: dict[str, _Registered] = {}
        for tool in tools:
            if tool.name in fresh or tool.name in taken:
                raise ToolRefused(f"two tools are named `{tool.name}`; a model could not tell them apart")
            fresh[tool.name] = _registered(tool)
        self._sources[source] = fresh

    def find(self, name: str) -> Tool | None:
        found = self._find(name)
        return found.tool if found else None

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(one.tool for registered in self._sources.values() for one in registered.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is shown."""
        return tuple(one.spec for registered in self._sources.values() for one in registered.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    def problems(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """What is wrong with the arguments of a registered tool, with places; empty if nothing is."""
        found = self._find(name)
        return found.schema.problems(arguments, "arguments") if found else f"there is no tool `{name}` any more"

    def _find(self, name: str) -> _Registered | None:
        return next((registered[name] for registered in self._sources.values() if name in registered), None)


def _registered(tool: Tool) -> _Registered:
    try:
        schema = Schema(tool.parameters)
    except SchemaRefused as error:
        raise ToolRefused(f"the parameters of the tool `{tool.name}` are no valid JSON schema: {error}") from None
    return _Registered(tool, schema, ToolSpec(tool.name, tool.description, tool.parameters))
