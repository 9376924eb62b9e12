"""`conditional`: chooses which steps of the same list run."""

from typing import ClassVar

from pilothouse.api.actions import Conditional
from pilothouse.api.workflow import Step
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.steps.kind import Beginning, Done, StepKind, require_bool


class ConditionalKind(StepKind[Conditional]):
    """The side that was chosen is the output `branch`; the brain skips the steps of the other side."""

    key = "conditional"
    bare: ClassVar = frozenset({"if"})
    conditions: ClassVar = frozenset({"if"})
    light = True
    outputs: ClassVar = frozenset({"branch"})

    async def begin(self, step: Step, action: Conditional, scope: Scope) -> Beginning:
        chosen = require_bool(await scope.evaluate(action.if_), action.if_)
        return Done({"branch": "then" if chosen else "else"})
