"""Agents that ask one another, as their run froze them, and what is stored of them."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from pilothouse.agents.definition import Definition, ToolGround, make_task
from pilothouse.agents.delegation.team import Team
from pilothouse.agents.events import Emit, ignore
from pilothouse.agents.hooks import BeforeToolCall
from pilothouse.agents.task import AgentResult, run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.records.sessions import Session
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.client import Sandbox
from tests.agents.desk import STEP, Desk


def says(text: str, tokens: int = 0) -> dict[str, Any]:
    return {"text": text, "usage": {"output": tokens}}


def uses(*calls: tuple[str, Mapping[str, Any]], tokens: int = 0) -> dict[str, Any]:
    return {
        "toolCalls": [{"name": name, "arguments": dict(arguments)} for name, arguments in calls],
        "usage": {"output": tokens},
    }


def asks(*agents: str, tokens: int = 0, **more: Any) -> dict[str, Any]:
    return uses(*((agent, {"message": f"Go, {agent}.", **more}) for agent in agents), tokens=tokens)


def agent(*turns: Mapping[str, Any], tools: Sequence[str] = (), **spec: Any) -> dict[str, Any]:
    """The spec of an agent with a scripted model. A tool with a `_` is built in, another one is an agent."""
    listed = [{"builtin": name} if "_" in name or name == "shell" else {"agentRef": {"name": name}} for name in tools]
    return {"model": {"provider": "Scripted", "script": [*turns]}, "tools": listed, **spec}


class NoSandbox:
    async def current(self) -> Sandbox:
        raise AssertionError("no tool of these agents works in a sandbox")


class Scene:
    """A run whose step invokes the agent `boss`."""

    def __init__(self, desk: Desk, sandbox: Sandbox | None = None, **agents: Mapping[str, Any]) -> None:
        self.desk = desk
        self._sandbox = sandbox or NoSandbox()
        specs = {name.replace("_", "-"): AgentSpec.model_validate(spec) for name, spec in agents.items()}
        self._members = {name: Definition(name, spec, f"You are {name}.") for name, spec in specs.items()}

    async def play(
        self,
        store: AttemptStore | None = None,
        emit: Emit = ignore,
        gate: BeforeToolCall | None = None,
        attempt: int = 1,
    ) -> AgentResult:
        """One process of the attempt; the first, or one that goes on after a kill."""
        store = store or await self.desk.attempt(attempt)
        ground = ToolGround(self._sandbox, store.put_blob, Redactor(), _no_secret, print)
        boss = self._members["boss"]
        task = make_task(
            boss.spec,
            session=self.desk.session,
            step=STEP,
            attempt=attempt,
            message="Begin.",
            arguments={},
            instructions=boss.instructions,
        )
        async with Team(store, ground, self._members, gate).opened(boss, task) as ready:
            return await run_agent(task, store, ready.model, ready.tools, ready.counted(emit), gate)

    async def sessions(self) -> dict[UUID, Session]:
        return {session.id: session for session in await self.desk.sessions()}

    async def own(self) -> list[dict[str, Any]]:
        """The messages of the boss."""
        return messages((await self.sessions())[self.desk.session])

    async def others(self) -> list[list[dict[str, Any]]]:
        """The messages of each agent that was asked, in the order in which they were."""
        return [messages(each) for id, each in (await self.sessions()).items() if id != self.desk.session]

    async def results(self) -> list[dict[str, Any]]:
        """The results that the boss's calls have."""
        return [message for message in await self.own() if message["role"] == "toolResult"]


def messages(session: Session) -> list[dict[str, Any]]:
    return [entry.body["message"] for entry in session.entries if entry.type == "message"]


def text_of(message: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in message["content"] if block["type"] == "text")


def _no_secret(key: KeyRef) -> str:
    raise AssertionError(key)
