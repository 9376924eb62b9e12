"""`transform`: computes a value."""

from typing import ClassVar

from pilothouse.api.actions import Transform
from pilothouse.api.workflow import Step
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.steps.kind import Beginning, Done, StepKind


class TransformKind(StepKind[Transform]):
    """A value that is nothing but one path is passed on as it is stored, whatever its size."""

    key = "transform"
    light = True
    outputs: ClassVar = frozenset({"value"})

    async def begin(self, step: Step, action: Transform, scope: Scope) -> Beginning:
        return Done({"value": await scope.render_stored(action.value)})
