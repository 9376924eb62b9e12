"""Tools from plain typed Python functions: `@tool` makes one of a function, sync or async.

@tool(idempotent=True)
def word_count(text: str, language: str = "en") -> int:
    \"\"\"Counts the words of a text.

    Args:
        text: What to count in.
        language: An ISO 639 code.
    \"\"\"
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints, overload

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from pilothouse.agents.messages import ImageContent, TextContent
from pilothouse.tools.docstrings import describe
from pilothouse.tools.running import GRACE, Running, ToolContext
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class NotATool(TypeError):  # noqa: N818 - the outcome, as the caller reports it
    """A function cannot be made a tool; the text says what it lacks."""


class FunctionTool:
    """A function as a tool. Calling the object calls the function, as in a test of it.

    What the function returns becomes the content: a text as it is, `None` as nothing, content blocks and a ToolResult
    as they are, anything else as JSON. What it raises is an error result. A parameter annotated with ToolContext is not
    the model's: through it the function tells how far it is and learns that it was cancelled. A sync function runs in a
    thread of its own.
    """

    def __init__(
        self, function: Callable[..., Any], name: str | None, *, idempotent: bool, execution_mode: ExecutionMode
    ) -> None:
        self.name = name or function.__name__
        self.idempotent = idempotent
        self.execution_mode = execution_mode
        self._function = function
        if not _NAME.match(self.name):
            raise NotATool(f"`{self.name}` cannot be a tool's name: up to 64 letters, digits, `_` and `-`")
        documented = describe(function.__doc__)
        if not documented.text:
            raise NotATool(f"the function of the tool `{self.name}` needs a docstring: the model reads it to decide")
        self.description = documented.text
        self._signature = _Signature.of(self.name, function, documented.arguments)
        self.parameters: Mapping[str, Any] = self._signature.schema()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    async def execute(self, call: ToolInvocation) -> ToolResult:
        try:
            arguments = self._signature.read(call.arguments)
        except ValidationError as error:
            return ToolResult.of(_problems(error), {"error": "InvalidArguments"}, is_error=True)
        async with Running(call) as running:
            if self._signature.context is not None:
                arguments[self._signature.context] = running.context
            if await running.run(self._function, arguments):
                return _result(running.value)
        return ToolResult.of(
            f"Cancelled, but `{self.name}` did not stop within {GRACE:g} seconds; it may still be at work.",
            {"error": "Aborted"},
            is_error=True,
        )


@overload
def tool(function: Callable[..., Any]) -> FunctionTool: ...


@overload
def tool(
    *, name: str | None = None, idempotent: bool = False, execution_mode: ExecutionMode = "parallel"
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    idempotent: bool = False,
    execution_mode: ExecutionMode = "parallel",
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a tool of a function, as `@tool` or `@tool(…)`. Raises NotATool.

    `name` is the function's own if not given; `idempotent` promises that running a call again, after its outcome was
    lost, does no harm; one `sequential` tool makes the whole batch of its turn sequential.
    """

    def make(function: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(function, name, idempotent=idempotent, execution_mode=execution_mode)

    return make if function is None else make(function)


@dataclass(frozen=True, slots=True)
class _Signature:
    """The parameters: those of the model as fields of `model`, by position so that none can hide an attribute of
    pydantic's; and the name of the one that takes the context."""

    model: type[BaseModel]
    names: Mapping[str, str]
    context: str | None

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], described: Mapping[str, str]) -> "_Signature":
        hints = get_type_hints(function, include_extras=True)
        parameters = [_checked(name, parameter, hints) for parameter in inspect.signature(function).parameters.values()]
        context = [parameter.name for parameter in parameters if hints[parameter.name] is ToolContext]
        own = [parameter for parameter in parameters if parameter.name not in context]
        if unknown := described.keys() - {parameter.name for parameter in own}:
            raise NotATool(
                f"the docstring of the tool `{name}` describes `{min(unknown)}`, which is no parameter of it"
            )
        fields: dict[str, Any] = {}
        for index, parameter in enumerate(own):
            default = ... if parameter.default is parameter.empty else parameter.default
            text = described.get(parameter.name)
            fields[f"p{index}"] = (hints[parameter.name], Field(default, alias=parameter.name, description=text))
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        names = {f"p{index}": parameter.name for index, parameter in enumerate(own)}
        return cls(model, names, context[0] if context else None)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = _untitled(self.model.model_json_schema())
        return schema

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments, as its annotations want them. Raises ValidationError."""
        values = self.model.model_validate(dict(arguments))
        return {name: getattr(values, field) for field, name in self.names.items()}


def _checked(name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> inspect.Parameter:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise NotATool(f"`{parameter}` of the tool `{name}` cannot be given by name, as a model gives its arguments")
    if parameter.name not in hints:
        raise NotATool(f"`{parameter.name}` of the tool `{name}` needs a type annotation")
    return parameter


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic makes of names: they say nothing new. A property may be called `title`."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _untitled(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}


def _result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, TextContent | ImageContent):
        return ToolResult((value,))
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(item, TextContent | ImageContent) for item in value)
    ):
        return ToolResult(tuple(value))
    if value is None:
        return ToolResult(())
    return ToolResult.of(value if isinstance(value, str) else pydantic_core.to_json(value).decode())


def _problems(error: ValidationError) -> str:
    places = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)[:5])
    return f"The arguments do not fit: {'; '.join(places)}."
