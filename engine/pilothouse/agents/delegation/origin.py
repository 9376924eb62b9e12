"""Where an agent was asked from: the lineage of its session."""

from dataclasses import dataclass
from uuid import UUID

from pilothouse.agents.delegation.account import Account
from pilothouse.agents.session import SessionTree
from pilothouse.agents.session.entries import CustomBody

LINEAGE = "lineage"
"""The type of the custom entry with which a session begins that answers a call."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The call that the session answers: the agent that made it, its session, the turn, the call's place in that and
    the id that the model gave it. `depth` counts the calls between the step's own agent and this session, from 1."""

    agent: str
    session: UUID
    turn: UUID
    ordinal: int
    call: str
    depth: int
    account: Account

    async def note(self, tree: SessionTree) -> None:
        """Before anything else is said there. A session that was begun says it already."""
        if tree.entries:
            return
        lineage = {
            "agent": self.agent,
            "parentSession": str(self.session),
            "turn": str(self.turn),
            "ordinal": self.ordinal,
            "call": self.call,
            "depth": self.depth,
        }
        await tree.add(CustomBody(custom_type=LINEAGE, data=lineage))
