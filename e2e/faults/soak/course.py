"""The workflow that the long fault runs strike: a step of every kind. Many of them run in one namespace, each under a
name of its own, and one witness hears them all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from e2e.faults.witness import PATH, Witness
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, agent, asks, light, workflow

IN_PODS = ("ours", "theirs", "agent")
"""The steps with side effects."""

STEPS = ("light", *IN_PODS, "last")

LIMIT = 300
"""Seconds within which a run must have ended, whatever happened."""


@dataclass(frozen=True)
class Course:
    """One of them, applied. Its steps run one after the other, those in Pods for `seconds` each."""

    applied: Applied
    steps: Sequence[str]

    @classmethod
    def begin(cls, witness: Witness, name: str, steps: Sequence[str] = STEPS, seconds: int = 1) -> "Course":
        witness.kubectl.apply(_agent(witness, name, seconds))
        made = [_step(witness, name, step, seconds) for step in steps]
        for before, step in zip(steps, made[1:], strict=False):
            step["needs"] = [before]
        return cls(Applied.of(witness.kubectl, workflow(name, *made)), steps)

    @property
    def name(self) -> str:
        return self.applied.name

    def end(self) -> None:
        """Returns once the run has ended. The API server may be away meanwhile."""
        wait = ("wait", "--for=condition=Finished", f"workflow/{self.name}", "--timeout=8s")
        until(lambda: self.applied.kubectl.succeeds(*wait), f"{self.name} has ended", LIMIT)

    def effects(self) -> Iterable[str]:
        """What a witness hears of a run that did everything once."""
        return (line for step in self.steps if step in IN_PODS for line in lines(self.name, step))

    def unknown(self) -> bool:
        """Whether the run ended since nobody can tell what became of a step."""
        conditions = {each["type"]: each for each in self.applied.object()["status"]["conditions"]}
        return bool(conditions["Ready"]["reason"] == "OutcomeUnknown")

    def problem(self, release: Release) -> str | None:
        """What is wrong with a run that should have succeeded at once: in its status, its rows or its Pods."""
        state = self.applied.object()["status"]["run"]["state"]
        rows = Rows(release, self.applied.kubectl.namespace or "", self.name)
        runs = [(run.number, run.state) for run in rows.runs()]
        tries = [(attempt.path, attempt.number, attempt.state) for attempt in rows.attempts()]
        events = [event.path for event in rows.events() if event.type == "StepSucceeded"]
        found = (state, runs, tries, events)
        once = [(step, 1, "Succeeded") for step in self.steps if step in IN_PODS]
        until(lambda: not self.applied.pods(), f"no Pod of {self.name} is left")
        return None if found == ("Succeeded", [(1, "Succeeded")], once, [*self.steps]) else f"{self.name}: {found}"


def expected(courses: Iterable[Course]) -> Counter[str]:
    """What the witness hears of runs that did everything once."""
    return Counter(line for course in courses for line in course.effects())


def lines(name: str, step: str) -> tuple[str, str]:
    """The two side effects of a step: at its begin, and at its end."""
    return f"{name}/{step}/begun", f"{name}/{step}/ended"


def _step(witness: Witness, name: str, step: str, seconds: int) -> dict[str, Any]:
    command = {"command": ["sh", "-c", _script(name, step, seconds)]}
    match step:
        case "ours":
            return {"name": step, "runCommand": command, "pod": witness.pod}
        case "theirs":
            return {"name": step, "runCommand": {**command, "image": witness.image}, "pod": witness.pod}
        case "agent":
            return asks(step, name)
    return light(step)


def _agent(witness: Witness, name: str, seconds: int) -> dict[str, Any]:
    call = {"name": "shell", "arguments": {"command": _script(name, "agent", seconds)}}
    return agent(name, {"toolCalls": [call]}, {"text": "done"}, tools=[{"builtin": "shell"}], pod=witness.pod)


def _script(name: str, step: str, seconds: int) -> str:
    begun, ended = lines(name, step)
    return f"echo {begun} >> {PATH}/log && sleep {seconds} && echo {ended} >> {PATH}/log"
