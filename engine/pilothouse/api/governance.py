"""What an Agent may do. The cluster owner's floors can only be tightened here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pilothouse.api.base import ApiModel
from pilothouse.api.fields import Duration, Items, JsonObject, Name, Text, Timestamp

Pattern = Annotated[str, Text(253, 1)]
Patterns = Annotated[tuple[Pattern, ...], Items(128, unique=True)]
Cost = Annotated[str, Text(32, 1, r"^[0-9]+(\.[0-9]+)?$", says='must be a decimal in quotes, like "1.50"')]
Amount = Annotated[int, Field(ge=1, le=2**53 - 1)]


class ToolPolicy(ApiModel):
    """What happens to calls of matching tools; the most specific pattern wins."""

    tool: Annotated[str, Text(253, 1, r"^[!-~]+$", says="must be a tool, tool:operation or a pattern with *")]
    action: Literal["Allow", "Ask", "Deny"]


class AllowDeny(ApiModel):
    """Names allowed and denied. `allow` absent: all that is not denied; empty: none."""

    allow: Patterns | None = None
    deny: Patterns = ()


class PathRules(ApiModel):
    """Paths, as prefixes or globs, that file tools may touch. `read` or `write` absent: all that is not denied."""

    read: Patterns | None = None
    write: Patterns | None = None
    deny: Patterns = ()


class RateLimit(ApiModel):
    """At most `calls` tool calls in any window of length `per`, and `burst` in any second."""

    calls: Amount
    per: Duration = "1m"
    burst: Amount | None = None


class Budget(ApiModel):
    """What one session of the Agent may use; what is absent has no limit of its own."""

    turns: Amount | None = None
    tool_calls: Amount | None = None
    tokens: Amount | None = None
    cost: Cost | None = None
    """US dollars, counted by `model.prices`."""
    duration: Duration | None = None
    """Waiting for a person does not count."""


class Preapproved(ApiModel):
    """A standing grant; its writer must hold the right to approve the class."""

    tool: Annotated[str, Text(128, 1)]
    match: JsonObject | None = None
    """Arguments by name that must equal these."""
    class_: Name = Field(alias="class")
    until: Timestamp | None = None
    times: Amount | None = None


class Governance(ApiModel):
    """The gates between the model and its tools."""

    autonomy: Literal["ReadOnly", "Supervised", "Full"] = "Supervised"
    """ReadOnly denies the tools that change things, Supervised asks, Full allows."""
    policies: Annotated[tuple[ToolPolicy, ...], Items(128, key="tool")] = ()
    commands: AllowDeny | None = None
    """By executable."""
    paths: PathRules | None = None
    domains: AllowDeny | None = None
    """A domain stands for its sub-domains, too."""
    rate_limit: RateLimit | None = None
    budget: Budget | None = None
    preapproved: Annotated[tuple[Preapproved, ...], Items(32)] = ()
    approval_ttl: Duration = Field(default="24h", alias="approvalTTL")
    """How long an approval may be decided."""
