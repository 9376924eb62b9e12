"""The ToolApproval kind: one request for one tool call, and a person's answer.

The rules here are about form and about what may change. Who may decide is an admission policy's business.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pilothouse.api.base import API_VERSION, ApiModel, Observed
from pilothouse.api.conditions import Conditions
from pilothouse.api.fields import Digest, Name, ObjectName, Text, Timestamp, User
from pilothouse.api.meta import ObjectMeta
from pilothouse.api.rules import Rule, only_with, present

Rules = tuple[Rule, ...]

MAX_ARGUMENTS = 131_072
"""Bytes of canonical arguments that a request can carry; a larger call is denied."""

Token = Annotated[str, Text(128, 1, "^[!-~]+$", says="must be printable ASCII without spaces")]
Visible = Annotated[
    str,
    Text(
        4096,
        pattern=r"^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]*$",
        says="must not hold control, formatting or private-use characters",
    ),
]
"""Text that a person decides by: what they see is what is there."""
Remark = Annotated[
    str, Text(1024, pattern=r"^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$", says="must not hold control or formatting characters")
]
Nonce = Annotated[str, Text(32, 32, "^[0-9a-f]{32}$", says="must be 32 lower-case hexadecimal digits")]
CanonicalArguments = Annotated[
    str, Text(MAX_ARGUMENTS, 2, "^[ -~]*$", says="must be canonical JSON in ASCII, at most 131072 characters")
]
Ordinal = Annotated[int, Field(ge=1, le=2**53 - 1)]


class WorkflowOf(ApiModel):
    """The Workflow object that the run belongs to."""

    name: ObjectName
    uid: Annotated[str, Text(64, 1)]


class RunOf(ApiModel):
    """The run that asks."""

    id: Annotated[str, Text(64, 1)]
    number: Ordinal | None = None


class ApprovalRequest(ApiModel):
    """What is asked, with every input of its digest; it never changes."""

    version: Literal["v1"] = "v1"
    """How the digest is made."""
    kind: Literal["ToolCall", "OutcomeUnknown", "Gate"]
    """A call to be made; a call of which nobody knows whether it happened; a step that waits for a person."""
    tool: Annotated[str, Text(253, 1, "^[!-~]+$", says="must be printable ASCII without spaces")]
    tool_version: Token
    pack_digest: Digest | None = None
    """Of the pack that brought the tool, if one did."""
    arguments: CanonicalArguments
    """RFC 8785, escaped to ASCII: the bytes that will be carried out."""
    workspace_digest: Digest | None = None
    """Of the workspace at the time of asking, if there is one."""
    namespace_uid: Annotated[str, Text(64, 1)] = Field(alias="namespaceUID")
    digest: Digest
    nonce: Nonce
    preview: Visible | None = None
    """The call for people, made from the hashed bytes."""
    workflow: WorkflowOf | None = None
    run: RunOf
    call: Token
    attempt: Ordinal
    seat: Annotated[int, Field(ge=1, le=9)]
    """Which of several approvers this object is for."""
    requested_by: Annotated[str, Text(1024, pattern=r"^[^\p{Cc}\p{Cf}]*$", says="must be a user name")]
    requester_may_decide: bool
    approval_class: Name
    expires_at: Timestamp


def _marks_done(spec: ToolApprovalSpec) -> str | None:
    fits = spec.request.kind == "OutcomeUnknown" and present(spec, "result")
    return None if spec.decision != "MarkDone" or fits else MARK_DONE_MESSAGE


def _result_fits(spec: ToolApprovalSpec) -> str | None:
    return RESULT_MESSAGE if present(spec, "result") and spec.decision != "MarkDone" else None


MARK_DONE_MESSAGE = "MarkDone needs a result and answers only an OutcomeUnknown request"
RESULT_MESSAGE = "result goes only with MarkDone"


class ToolApprovalSpec(ApiModel):
    """The request, and the decision once someone made it."""

    rules: ClassVar[Rules] = (
        Rule("self.request == oldSelf.request", "a request cannot change after creation"),
        Rule("!has(oldSelf.decision) || self == oldSelf", "a decision is final"),
        only_with("decision", "decidedBy", "digest", "reason", "result"),
        Rule(
            "!has(self.decision) || self.decision != 'MarkDone' || "
            "(self.request.kind == 'OutcomeUnknown' && has(self.result))",
            MARK_DONE_MESSAGE,
            _marks_done,
        ),
        Rule("!has(self.result) || (has(self.decision) && self.decision == 'MarkDone')", RESULT_MESSAGE, _result_fits),
    )

    request: ApprovalRequest
    decision: Literal["Approved", "Denied", "MarkDone"] | None = None
    decided_by: User | None = None
    """The name of the person who decides; must be the caller."""
    digest: Digest | None = None
    """The digest of the request that was decided; if given, it must be this request's."""
    reason: Remark | None = None
    result: Annotated[str, Text(65536)] | None = None
    """With MarkDone: what the tool shall be taken to have answered."""


class ToolApprovalStatus(Observed):
    """What became of the request."""

    observed_generation: int | None = None
    conditions: Conditions = ()


def _name_matches(approval: ToolApproval) -> str | None:
    ending = "-" + approval.spec.request.digest[7:23]
    return None if (approval.metadata.name or "").endswith(ending) else NAME_MESSAGE


NAME_MESSAGE = "the name must end in - and the first 16 hex digits of spec.request.digest"


class ToolApproval(ApiModel):
    """Asks a person to release one tool call."""

    rules: ClassVar[Rules] = (
        Rule(
            "self.metadata.name.endsWith('-' + self.spec.request.digest.substring(7, 23))", NAME_MESSAGE, _name_matches
        ),
    )

    api_version: Literal["pilothouse.dev/v1alpha1"] = API_VERSION
    kind: Literal["ToolApproval"] = "ToolApproval"
    metadata: ObjectMeta
    spec: ToolApprovalSpec
    status: ToolApprovalStatus | None = None
