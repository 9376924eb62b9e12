"""Double confirmation: an answer is the last word once the model has said so.

What stands is read from the messages, so a process that resumes the task does not ask again what was answered.
"""

import re
from typing import Literal, TypeAlias

from pilothouse.agents.messages import AssistantMessage, Message, UserMessage
from pilothouse.agents.turns import failed

QUESTION = (
    "Is the task done, all of it? If it is, answer COMPLETED, followed by the whole final answer. "
    "If it is not, answer CONTINUE."
)
GO_ON = "Go on with the task."

_COMPLETED = re.compile(r"\s*COMPLETED\b[.:]?\s*")
_CONTINUE = re.compile(r"\s*CONTINUE\b")

State: TypeAlias = Literal["working", "answered", "asked", "confirmed", "unfinished"]


class Confirmation:
    """Follows what the model said and was asked."""

    def __init__(self) -> None:
        self.state: State = "working"

    def observe(self, message: Message) -> None:
        """Takes note of a message. A call, or whatever else a user says, makes the question void."""
        if isinstance(message, UserMessage):
            asked = [block.text for block in message.content if block.type == "text"] == [QUESTION]
            self.state = "asked" if asked else "working"
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            self.state = "working"
        elif isinstance(message, AssistantMessage) and message.text.strip() and not failed(message):
            self.state = self._heard(message.text)

    def text_of(self, message: AssistantMessage) -> str:
        """What a message that was observed says of the task itself: it is empty where that is in an earlier one."""
        if self.state == "confirmed":
            return _COMPLETED.sub("", message.text, count=1)
        return "" if self.state == "unfinished" else message.text

    def next(self) -> UserMessage | None:
        """What the model is to be told now that it has stopped."""
        if self.state in ("answered", "asked"):
            return UserMessage.of(QUESTION)
        return UserMessage.of(GO_ON) if self.state == "unfinished" else None

    def _heard(self, text: str) -> State:
        if self.state != "asked":
            return "answered"
        if _COMPLETED.match(text):
            return "confirmed"
        return "unfinished" if _CONTINUE.match(text) else "asked"
