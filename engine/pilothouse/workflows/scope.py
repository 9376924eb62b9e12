"""The scope of a run: what the expressions of a step can name, taken from the recorded rows."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pilothouse.api.agent import AgentSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.runs import Snapshot, StepId
from pilothouse.records.values import JSON, BlobRef, Inline, Stored
from pilothouse.store.keeping import load
from pilothouse.store.ports import Blobs
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.expressions.references import Path, References
from pilothouse.workflows.expressions.template import Template, render, walk

NAMES = frozenset({"params", "steps", "run"})
"""The names that every expression of a step may use."""

RUN_FIELDS = ("id", "name", "namespace", "number")
"""What `run` holds."""


class Scope:
    """Evaluates expressions over a snapshot: each reads only the paths that it names, outside of any
    transaction. Raises Failed: F-INP where an expression or its value is wrong, F-RES beyond a limit."""

    def __init__(self, snapshot: Snapshot, agents: Mapping[str, AgentSpec], evaluator: Evaluator, blobs: Blobs) -> None:
        self.agents = agents
        self._snapshot = snapshot
        self._evaluator = evaluator
        self._blobs = blobs

    async def evaluate(self, source: str) -> JSON:
        """The value of a bare CEL expression."""
        value: JSON = await self._load(await self._stored(source))
        return value

    async def render(self, tree: JSON) -> JSON:
        """The tree with every `${{ }}` in it evaluated, each once."""
        sources = dict.fromkeys(part.source for _, template in walk(tree) for part in template.expressions)
        return render(tree, {source: await self.evaluate(source) for source in sources})

    async def render_stored(self, tree: JSON) -> JSON | BlobRef:
        """As `render`; a lone path to a value that is kept as a blob is passed on by its digest."""
        lone = Template.parse(tree).lone if isinstance(tree, str) else None
        if lone is None:
            return await self.render(tree)
        stored = await self._stored(lone.source)
        return stored if isinstance(stored, BlobRef) else stored.value

    async def _stored(self, source: str) -> Stored:
        try:
            compiled = await self._evaluator.compile(source, NAMES)
            if compiled.references.lone_path is not None:
                return await self._at(compiled.references.lone_path)
            return Inline(await self._evaluator.evaluate(source, await self._values(compiled.references)))
        except ExpressionError as error:
            raise Failed(FailureCode.INP, f"`{source}`: {error}") from None
        except ExpressionLimit as error:
            raise Failed(FailureCode.RES, f"`{source}`: {error}") from None

    async def _at(self, path: Path) -> Stored:
        """The value at a path, without an expression being evaluated."""
        if path[0] == "steps" and len(path) == 4 and path[2] == "outputs":
            stored = self._outputs(str(path[1])).get(str(path[3]))
            if stored is None:
                raise ExpressionError(f"{_shown(path)} is absent; {self._why_absent(str(path[1]))}")
            return stored
        value = await self._root(path)
        for depth in range(_known(path), len(path)):
            value = _step_into(value, path, depth)
        return Inline(value)

    async def _root(self, path: Path) -> Any:
        if path[0] == "steps" and len(path) > 4:
            return await self._load(await self._at(path[:4]))
        return (await self._values(References(frozenset({path}), frozenset(), None)))[str(path[0])]

    async def _values(self, references: References) -> dict[str, Any]:
        steps: dict[str, Any] = {}
        for name, reads in references.steps.items():
            outputs = self._outputs(name)
            wanted = set(outputs) if () in reads.outputs else {str(path[0]) for path in reads.outputs}
            loaded = {key: await self._load(outputs[key]) for key in sorted(wanted & set(outputs))}
            steps[name] = {"state": self._state(name), "outputs": loaded}
        return {"params": dict(self._snapshot.run.params), "run": self._run(), "steps": steps}

    def _run(self) -> dict[str, Any]:
        run = self._snapshot.run
        return dict(zip(RUN_FIELDS, (str(run.ref.run), run.workflow, run.namespace, run.number), strict=True))

    def _outputs(self, step: str) -> Mapping[str, Stored]:
        return self._snapshot.steps[StepId(step)].outputs

    def _state(self, step: str) -> str:
        return self._snapshot.steps[StepId(step)].state.value

    def _why_absent(self, step: str) -> str:
        state = self._state(step)
        gave = ", ".join(sorted(self._outputs(step)))
        if gave or state == "Succeeded":
            return f"step `{step}` is {state} and gave: {gave or 'nothing'}; ask for it with has() first"
        return f"step `{step}` is {state} and gave nothing; ask for it with has() or for the step's state first"

    async def _load(self, stored: Stored) -> Any:
        return await load(stored, partial(self._blobs.get_blob, self._snapshot.run.ref.tenant))


def _known(path: Path) -> int:
    return 4 if path[0] == "steps" and len(path) > 4 else 1


def _step_into(value: Any, path: Path, depth: int) -> Any:
    key = path[depth]
    if isinstance(value, dict) and isinstance(key, str) and key in value:
        return value[key]
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    raise ExpressionError(f"{_shown(path[: depth + 1])} is absent")


def _shown(path: Path) -> str:
    return str(path[0]) + "".join(f".{key}" if _plain(key) else f"[{key!r}]" for key in path[1:])


def _plain(key: str | int) -> bool:
    return isinstance(key, str) and key.isidentifier()
