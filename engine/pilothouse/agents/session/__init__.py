"""An agent's session: a tree of entries, the context that a branch of it makes, and what changes either."""

from pilothouse.agents.session.compaction import (
    CompactionSettings,
    Preparation,
    compact,
    prepare,
    should_compact,
)
from pilothouse.agents.session.context import Projector, Projectors, SessionContext, build_context
from pilothouse.agents.session.entries import (
    ActiveToolsChangeBody,
    Body,
    BranchSummaryBody,
    CompactionBody,
    CustomBody,
    CustomMessageBody,
    FileLists,
    LabelBody,
    LeafBody,
    MessageBody,
    ModelChangeBody,
    SessionInfoBody,
    ThinkingLevelChangeBody,
    body_of,
    message_of,
    read_body,
)
from pilothouse.agents.session.errors import CompactionError, SessionError, SummaryError
from pilothouse.agents.session.fork import fork
from pilothouse.agents.session.jsonl import FileEntry, Header, SessionFile, read_jsonl, write_jsonl
from pilothouse.agents.session.navigation import (
    BranchSummarySettings,
    Navigation,
    NavigationPlan,
    navigate,
    plan_navigation,
    summarise_branch,
)
from pilothouse.agents.session.state import ModelRef, SessionState, check_tool_names
from pilothouse.agents.session.summary import ModelSummariser, Summariser, Summary, SummaryRequest
from pilothouse.agents.session.tokens import context_tokens, estimate
from pilothouse.agents.session.transfer import Imported, export_session, import_session
from pilothouse.agents.session.tree import SessionTree

__all__ = [
    "ActiveToolsChangeBody",
    "Body",
    "BranchSummaryBody",
    "BranchSummarySettings",
    "CompactionBody",
    "CompactionError",
    "CompactionSettings",
    "CustomBody",
    "CustomMessageBody",
    "FileEntry",
    "FileLists",
    "Header",
    "Imported",
    "LabelBody",
    "LeafBody",
    "MessageBody",
    "ModelChangeBody",
    "ModelRef",
    "ModelSummariser",
    "Navigation",
    "NavigationPlan",
    "Preparation",
    "Projector",
    "Projectors",
    "SessionContext",
    "SessionError",
    "SessionFile",
    "SessionInfoBody",
    "SessionState",
    "SessionTree",
    "Summariser",
    "Summary",
    "SummaryError",
    "SummaryRequest",
    "ThinkingLevelChangeBody",
    "body_of",
    "build_context",
    "check_tool_names",
    "compact",
    "context_tokens",
    "estimate",
    "export_session",
    "fork",
    "import_session",
    "message_of",
    "navigate",
    "plan_navigation",
    "prepare",
    "read_body",
    "read_jsonl",
    "should_compact",
    "summarise_branch",
    "write_jsonl",
]
