"""What is known of a task so far, reduced from the messages of its branch."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.answers import Answer, AnswerSchema
from pilothouse.agents.bounds import Bounds
from pilothouse.agents.confirmation import Confirmation
from pilothouse.agents.hooks import EndedTurn
from pilothouse.agents.messages import AssistantMessage, Message, UserMessage
from pilothouse.agents.session import CompactionBody, body_of
from pilothouse.agents.turns import failed, terminates
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.sessions import Entry

ANSWER_RETRIES = 2
"""How often a model is asked again for an answer that satisfies the schema."""

SILENT = "Your response was empty. Go on with the task, or give the final answer."


class Progress:
    """Decides, after each turn, whether the task goes on; then holds its answer or its failure."""

    def __init__(self, bounds: Bounds, schema: AnswerSchema | None) -> None:
        self.text = ""
        """The text of the final answer; before there is one, the last text that the model said."""
        self.answer: Answer | None = None
        self.failure: Failure | None = None
        self.bounds = bounds
        self._schema = schema
        self._confirmation = Confirmation() if bounds.limits.double_confirmation else None
        self._answers = 0
        self._cut_off = False

    def observe(self, message: Message) -> None:
        self.bounds.observe(message)
        if self._confirmation:
            self._confirmation.observe(message)
        if not isinstance(message, AssistantMessage):
            return
        self.failure = _model_failure(message) if message.stop_reason == "error" else None
        if failed(message):
            return
        said = self._confirmation.text_of(message) if self._confirmation else message.text
        self.text = said if said.strip() else self.text
        self._answers += not (message.tool_calls or self.bounds.empty)
        self._cut_off = message.stop_reason == "length"

    def spend(self, entry: Entry) -> None:
        """Takes note of what a compaction took."""
        body = body_of(entry) if entry.type == CompactionBody.type else None
        if isinstance(body, CompactionBody):
            self.bounds.spend(body.usage)

    async def should_stop(self, turn: EndedTurn) -> bool:
        if all(map(terminates, turn.tool_results)):
            return False
        self.failure = self.bounds.exceeded()
        return self.failure is not None

    async def follow_ups(self) -> Sequence[Message]:
        """What the model is told where it stopped and is not done."""
        if self._cut_off and self._schema is None:
            self.failure = _truncated()
            return ()
        if self.bounds.empty:
            self.failure = self.bounds.exceeded()
            question = self._confirmation and self._confirmation.next()
            return () if self.failure else (question or UserMessage.of(SILENT),)
        if self._schema:
            return self._ask_again(self._schema)
        return self._confirm(self._confirmation) if self._confirmation else ()

    def _confirm(self, confirmation: Confirmation) -> Sequence[Message]:
        """An answer counts as it is where no turn is left to ask in, unless the model said that it is not done."""
        message, exceeded = confirmation.next(), self.bounds.exceeded()
        if message and exceeded is None:
            return (message,)
        self.failure = exceeded if confirmation.state == "unfinished" else None
        return ()

    def _ask_again(self, schema: AnswerSchema) -> Sequence[Message]:
        """The question again, with what was wrong, if the final answer does not satisfy the schema."""
        read = schema.read(self.text)
        if isinstance(read, Answer):
            self.answer = read
            return ()
        self.failure = self.bounds.exceeded() if self._answers <= ANSWER_RETRIES else _invalid(read.problems)
        if self.failure:
            return ()
        text = f"This is not the answer that is needed: {read.problems}. Answer again, with the JSON value only."
        return (UserMessage.of(text),)

    def outputs(self, session: UUID) -> dict[str, JsonValue]:
        body: dict[str, JsonValue] = {
            "text": self.text,
            "usage": self.bounds.usage.model_dump(mode="json", by_alias=True),
            "turns": self.bounds.turns,
            "session": str(session),
        }
        return body | ({"data": self.answer.data} if self.answer else {})


def _invalid(problems: str) -> Failure:
    text = f"the final answer does not satisfy the outputs schema after {ANSWER_RETRIES} more tries: {problems}"
    return Failure(FailureCode.VAL, text, "OutputInvalid")


def _truncated() -> Failure:
    text = "the answer was cut off at the model's limit of output tokens; allow more, or ask for less"
    return Failure(FailureCode.RES, text, "AnswerTruncated")


def _model_failure(message: AssistantMessage) -> Failure:
    code = message.error_code if message.error_code in set(FailureCode) else FailureCode.UNK
    return Failure(FailureCode(code), message.error_message or "the model call failed", "ModelFailed")
