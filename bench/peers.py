"""The peers, set up as their own documentation does, with the same conversation as ours.

LangGraph: a graph of a chat model and its tool node. Its Postgres saver keeps every step; it writes while the next step
runs already (`async`, its default) or before that (`sync`, as we do). pydantic-ai: an agent whose model is a function;
it stores nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import uuid4

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from bench.turns import ANSWER, PROMPT, TURNS, Converse, Engine


def langgraph(saver: AsyncPostgresSaver, durability: Literal["async", "sync"]) -> Engine:
    """LangGraph with its Postgres saver, whose tables are there."""

    @asynccontextmanager
    async def engine() -> AsyncIterator[Converse]:
        graph = _graph().compile(checkpointer=saver)
        thread = {"thread_id": str(uuid4())}

        async def converse() -> str:
            ended = await graph.ainvoke(
                MessagesState(messages=[HumanMessage(PROMPT)]),
                RunnableConfig(configurable=thread, recursion_limit=2 * TURNS + 5),
                durability=durability,
            )
            return str(ended["messages"][-1].content)

        yield converse

    return engine


def _graph() -> StateGraph[MessagesState]:
    model = GenericFakeChatModel(messages=iter([*map(_turn, range(TURNS)), AIMessage(ANSWER)]))

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([StructuredTool.from_function(coroutine=_count, name="count")]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph


def _turn(number: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "count", "args": {"number": number}, "id": f"call-{number}"}])


async def _count(number: int) -> str:
    """Counts."""
    return "ok"


@asynccontextmanager
async def pydantic_ai() -> AsyncIterator[Converse]:
    """pydantic-ai."""
    agent = Agent(FunctionModel(_ask), tools=[_count])

    async def converse() -> str:
        return (await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=None))).output

    yield converse


async def _ask(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    number = sum(isinstance(message, ModelResponse) for message in messages)
    if number == TURNS:
        return ModelResponse([TextPart(ANSWER)])
    return ModelResponse([ToolCallPart("_count", {"number": number}, f"call-{number}")])
