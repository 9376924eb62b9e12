"""What a line that begins with a slash does."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from pilothouse.agents.errors import AgentError
from pilothouse.agents.harness import AgentHarness, Destination
from pilothouse.agents.messages import AssistantMessage, Message, TextContent, ToolResultMessage
from pilothouse.agents.session import SessionTree, message_of
from pilothouse.cli.chat.screen import Screen
from pilothouse.records.sessions import Entry
from pilothouse.store.rules import LEAF

HELP = """\
/tree              the session's entries with their numbers; * marks where you are
/branch NUMBER     go on from that entry; what came after it stays in the session
/compact [HOW]     summarise the older part of the conversation, in these words
/quit              end the conversation, as Ctrl-D does; Ctrl-C aborts an answer
Every other line goes to the agent."""

_WIDTH = 72


class Commands:
    def __init__(self, harness: AgentHarness, screen: Screen) -> None:
        self._harness = harness
        self._screen = screen

    async def carry_out(self, line: str) -> bool:
        """Whether the conversation goes on."""
        verb, _, rest = line.partition(" ")
        try:
            match verb:
                case "/quit":
                    return False
                case "/tree":
                    self._tell(_drawn(self._harness.tree))
                case "/branch":
                    await self._branch(rest.strip())
                case "/compact":
                    await self._harness.compact(rest.strip())
                case "/help":
                    self._screen.tell(HELP)
                case _:
                    self._screen.tell(f"! there is no {verb}; /help lists what there is")
        except AgentError as error:
            self._screen.tell(f"! {error}")
        return True

    async def _branch(self, number: str) -> None:
        nodes = _nodes(self._harness.tree)
        if not number.isdecimal() or not 1 <= int(number) <= len(nodes):
            self._screen.tell(f"! /branch takes a number from 1 to {len(nodes)}; /tree shows them")
            return
        moved = await self._harness.navigate(Destination(nodes[int(number) - 1].id))
        if moved is not None and moved.editor_text:
            self._screen.tell(f"before: {moved.editor_text}")

    def _tell(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._screen.tell(line)


def _nodes(tree: SessionTree) -> Sequence[Entry]:
    return [entry for entry in tree.entries if entry.type != LEAF]


def _drawn(tree: SessionTree) -> Iterator[str]:
    """A line an entry; one that does not hang below the line before it says below which."""
    branch, labels = {entry.id for entry in tree.branch()}, tree.labels()
    numbers: dict[UUID | None, int] = {None: 0}
    for number, entry in enumerate(_nodes(tree), 1):
        mark = "*" if entry.id == tree.leaf else "|" if entry.id in branch else " "
        label = f" [{labels[entry.id]}]" if entry.id in labels else ""
        above = numbers[entry.parent]
        below = "" if above == number - 1 else f" (below {above or 'the root'})"
        numbers[entry.id] = number
        yield f"{mark} {number:3} {_said(entry)}{label}{below}"


def _said(entry: Entry) -> str:
    message = message_of(entry)
    return entry.type if message is None else f"{message.role}: {_text(message)}"


def _text(message: Message) -> str:
    called = [f"> {call.name}" for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    named = [message.tool_name] if isinstance(message, ToolResultMessage) else []
    content = getattr(message, "content", ())
    texts = [content] if isinstance(content, str) else [one.text for one in content if isinstance(one, TextContent)]
    line = " ".join(" ".join([*named, *texts, *called]).split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …"
