"""What a scripted model is to say, turn by turn."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from pilothouse.agents.messages import Usage
from pilothouse.models.provider import FailureCode


class ScriptError(ValueError):
    """A script is not usable; the text says where, as in `script[1].toolCalls[0].name: Field required`."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class ScriptedCall(_Entry):
    """A tool call. `arguments_text` is for arguments that are no JSON object, as a weak model writes them."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    arguments_text: str | None = None
    id: str = ""


class ScriptedError(_Entry):
    message: str
    code: FailureCode = "F-DEP"
    retryable: bool = False


class ScriptedTurn(_Entry):
    """One answer: thinking, then text, then tool calls; or an error after whatever stands beside it."""

    thinking: str = ""
    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    error: ScriptedError | None = None
    usage: Usage = Usage()

    @property
    def tokens(self) -> Usage:
        """What the turn takes; the sum may be left out."""
        usage = self.usage
        total = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
        return usage.model_copy(update={"total_tokens": total})

    @model_validator(mode="after")
    def _says_something(self) -> "ScriptedTurn":
        if not self.model_fields_set & {"thinking", "text", "tool_calls", "error"}:
            raise ValueError("a turn needs text, thinking, toolCalls or error")
        return self


Script = tuple[ScriptedTurn, ...]
_SCRIPT: TypeAdapter[Script] = TypeAdapter(Annotated[Script, Field(min_length=1)])


def parse_script(turns: Iterable[Mapping[str, Any]]) -> Script:
    """The checked turns. Raises `ScriptError`."""
    try:
        return _SCRIPT.validate_python(tuple(turns))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ScriptError(f"script{_path(first['loc'])}: {first['msg']}") from None


def load_script(path: Path) -> Script:
    """The turns listed in a YAML or JSON file. Raises `ScriptError`, or `OSError` if it cannot be read."""
    import yaml

    try:
        turns = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: not a YAML or JSON file: {error}") from None
    if not isinstance(turns, list):
        raise ScriptError(f"{path}: a script is a list of turns")
    return parse_script(turns)


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
