"""What the agents of one attempt use up together."""

from time import monotonic

from pilothouse.agents.bounds import Bounds, Limits
from pilothouse.agents.events import AgentEvent, MessageEnd
from pilothouse.agents.messages import AssistantMessage
from pilothouse.agents.progress import Progress
from pilothouse.agents.resume import worked
from pilothouse.agents.session import SessionTree, message_of
from pilothouse.agents.turns import failed
from pilothouse.records.failures import Failed, FailureCode


class Account:
    """What an agent has used of its limits. Tokens of an agent that was asked are charged to the one that asked it,
    while it works: several that work side by side share what is left."""

    def __init__(self, limits: Limits, caller: "Account | None" = None) -> None:
        self._limits = limits
        self._caller = caller
        self._turns = 0
        self._tokens = 0
        self._began = monotonic()

    @classmethod
    def of(cls, tree: SessionTree, limits: Limits, caller: "Account | None" = None) -> "Account":
        """The account of a session that may have been worked on before, as after a restart."""
        used, account = Progress(Bounds(limits), None), cls(limits, caller)
        for entry in filter(tree.own, tree.branch()):
            used.spend(entry)
            if message := message_of(entry):
                used.observe(message)
        account._turns = used.bounds.turns
        account._began -= worked(tree).total_seconds()
        account.charge(used.bounds.usage.total_tokens)
        return account

    def observe(self, event: AgentEvent) -> None:
        """Counts the agent's own turns."""
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._turns += not failed(event.message)

    @property
    def spent(self) -> bool:
        """Whether there is no token left here, or with any agent that asked."""
        limit = self._limits.tokens
        return (limit is not None and self._tokens >= limit) or (self._caller is not None and self._caller.spent)

    def charge(self, tokens: int) -> None:
        """Takes note of what a call of the agent's model took; so does every agent above."""
        self._tokens += tokens
        if self._caller is not None:
            self._caller.charge(tokens)

    def within(self, limits: Limits) -> Limits:
        """What of its own limits an agent gets that is asked now. Raises Failed where nothing is left."""
        turns = self._limits.turns - self._turns
        if turns <= 0:
            text = f"the budget of {self._limits.turns} turns is used up"
            raise Failed(FailureCode.RES, f"{text}; no agent is asked in the last of them", "TurnLimit")
        if self.spent:
            raise Failed(FailureCode.RES, "the budget of tokens is used up", "TokenLimit")
        return limits.lowered(turns, self._seconds())

    def _seconds(self) -> float | None:
        duration = self._limits.duration
        return None if duration is None else max(0.0, duration - (monotonic() - self._began))
