"""What an entry of a session holds, one model a type, in the agent harness's JSON form.

The id, the parent and the time of an entry are the store's. Fields that this version does not know are kept. So are
entries of a type that it does not know: they stand on the branch and say nothing.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from pilothouse.agents.messages import Message, Usage, UserContent, from_wire, to_wire
from pilothouse.agents.session.errors import SessionError
from pilothouse.records.sessions import Entry

ROOT = "root"
"""What stands for the place before the first entry where an id is expected."""

_Absent = Field(exclude_if=lambda value: value is None)


def _read_message(value: object) -> Message:
    """Raises MessageError, which is a ValueError."""
    if isinstance(value, Message):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a message must be an object")
    return from_wire(value)


_WireMessage = Annotated[Message, PlainValidator(_read_message), PlainSerializer(to_wire)]


class Body(BaseModel):
    """The fields of one entry."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    type: ClassVar[str]

    def to_wire(self) -> dict[str, Any]:
        """The JSON form; absent optional fields are left out."""
        return self.model_dump(mode="json", by_alias=True)


class MessageBody(Body):
    """A message of any role; the result of a tool is one, too."""

    type: ClassVar = "message"
    message: _WireMessage


class ModelChangeBody(Body):
    """From here on this model answers."""

    type: ClassVar = "model_change"
    provider: str
    model_id: str


class ThinkingLevelChangeBody(Body):
    type: ClassVar = "thinking_level_change"
    thinking_level: str


class ActiveToolsChangeBody(Body):
    """From here on the model sees these tools and no others."""

    type: ClassVar = "active_tools_change"
    active_tool_names: tuple[str, ...]


class FileLists(Body):
    """The files that the summarised calls read, and those that they changed; no file is in both."""

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


class _SummaryBody(Body):
    """`details` are FileLists, unless the summary came `from_hook`: then they are the hook's own."""

    summary: str
    details: Annotated[JsonValue, _Absent] = None
    usage: Annotated[Usage | None, _Absent] = None
    from_hook: Annotated[bool | None, _Absent] = None


class CompactionBody(_SummaryBody):
    """The summary stands for all before the kept part. That is `retained_tail`, or without one what lies on the
    branch from `first_kept_entry_id` on."""

    type: ClassVar = "compaction"
    tokens_before: int
    first_kept_entry_id: Annotated[str | None, _Absent] = None
    retained_tail: Annotated[tuple[_WireMessage, ...] | None, _Absent] = None


class BranchSummaryBody(_SummaryBody):
    """What happened on the branch that was left. `from_id` is the entry that the summary hangs below, or `root`."""

    type: ClassVar = "branch_summary"
    from_id: str


class CustomBody(Body):
    """State of an extension; the model does not see it, unless a projector makes messages of it."""

    type: ClassVar = "custom"
    custom_type: str
    data: Annotated[JsonValue, _Absent] = None


class CustomMessageBody(Body):
    """A message of an extension, which the model sees as the user's. `display`: whether people see it."""

    type: ClassVar = "custom_message"
    custom_type: str
    content: str | tuple[UserContent, ...]
    display: bool = True
    details: Annotated[JsonValue, _Absent] = None


class LabelBody(Body):
    """Names an entry; a blank or absent label clears its name."""

    type: ClassVar = "label"
    target_id: str
    label: Annotated[str | None, _Absent] = None


class LeafBody(Body):
    """Makes the target the leaf; None is the place before the first entry. Never on a branch itself."""

    type: ClassVar = "leaf"
    target_id: str | None


class SessionInfoBody(Body):
    """The name of the session; the last one holds."""

    type: ClassVar = "session_info"
    name: Annotated[str | None, _Absent] = None


BODIES: Mapping[str, type[Body]] = {
    kind.type: kind
    for kind in (
        MessageBody,
        ModelChangeBody,
        ThinkingLevelChangeBody,
        ActiveToolsChangeBody,
        CompactionBody,
        BranchSummaryBody,
        CustomBody,
        CustomMessageBody,
        LabelBody,
        LeafBody,
        SessionInfoBody,
    )
}


def read_body(kind: str, fields: Mapping[str, Any]) -> Body | None:
    """The body of an entry, None where the type is not known. Raises SessionError that names the field."""
    model = BODIES.get(kind)
    if model is None:
        return None
    try:
        return model.model_validate(fields, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8]) or kind
        raise SessionError("invalid_entry", f"{where}: {first['msg']}") from None


def body_of(entry: Entry) -> Body | None:
    """The body of a stored entry, None where its type is not known."""
    try:
        return read_body(entry.type, entry.body)
    except SessionError as error:
        raise SessionError("invalid_entry", f"the entry {entry.id} cannot be read: {error}") from None


def message_of(entry: Entry) -> Message | None:
    """The message that the entry holds, if it is a message."""
    body = body_of(entry) if entry.type == MessageBody.type else None
    return body.message if isinstance(body, MessageBody) else None


def id_or_root(entry: UUID | None) -> str:
    return ROOT if entry is None else str(entry)
