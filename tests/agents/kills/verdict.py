"""What is wrong with a session whose processes were killed, beside the same session left alone."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pilothouse.records.events import EventType
from pilothouse.records.states import AttemptState
from tests.agents.kills.evidence import Evidence
from tests.agents.kills.trial import Traces


@dataclass(frozen=True)
class Case:
    """A trial, and the same session undisturbed."""

    traces: Traces
    undisturbed: Traces

    @property
    def deaths(self) -> Sequence[Evidence]:
        return self.traces.deaths

    @property
    def end(self) -> Evidence:
        return self.traces.end

    @property
    def whole(self) -> Evidence:
        return self.undisturbed.end

    @property
    def lost(self) -> list[str]:
        """Entries that the store had, or said to have, and that are not there at the end as they were."""
        there = {entry.id: entry for entry in self.end.entries}
        had = {entry.id: entry for death in self.deaths for entry in death.entries}
        changed = {str(id) for id, entry in had.items() if there.get(id) != entry}
        return sorted(changed | (self.end.kept - {str(id) for id in there}))

    @property
    def repeated(self) -> list[str]:
        """Calls that had their effect more often than they may: once, and once more for each death at which a call
        that may be made again had been begun and had no result."""
        return sorted(call for call, count in self.end.effects.items() if count > 1 + self._excused(call))

    @property
    def again(self) -> int:
        """How often the effect of a call was had again that may be."""
        return sum(self.end.effects.values()) - len(self.end.effects) if not self.repeated else 0

    def wrong(self) -> list[str]:
        """A line for each thing that is wrong."""
        trial = self.traces.trial
        where = f"{' and '.join(map(str, trial.kills))} of {trial.plan}"
        return [f"{problem}; killed {where}" for problem in self._problems()]

    def _problems(self) -> Iterator[str]:
        if self.lost:
            yield f"lost entries: {self.lost}"
        if self.repeated:
            yield f"repeated effects: {self.repeated}"
        yield from _asked(self)
        yield from _results(self.end)
        yield from _said(self.end)
        yield from _unknown(self) if self.end.unknown else _complete(self)

    def _excused(self, call: str) -> int:
        return sum(call in death.open for death in self.deaths) if self.traces.trial.plan.repeatable(call) else 0


def _asked(case: Case) -> Iterator[str]:
    """A model is asked again only where its answer was not recorded, and each time it is shown the same."""
    times = Counter(turn for turn, _, _ in case.end.asked)
    shown = {turn: digest for turn, digest, _ in case.whole.asked}
    for turn, count in times.items():
        if count > 1 + sum(death.answers == turn for death in case.deaths):
            yield f"the model was asked {count} times for turn {turn}"
    if any(shown.get(turn) != digest for turn, digest, _ in case.end.asked):
        yield "the model was shown another conversation"
    if not all(legal for _, _, legal in case.end.asked):
        yield "the model was shown a call without its one result"


def _results(end: Evidence) -> Iterator[str]:
    rows = Counter(row.call for row in end.rows)
    if any(count > 1 for count in rows.values()):
        yield f"calls have several rows: {rows}"
    done = Counter(row.call for row in end.rows if row.done)
    told = Counter(event.data["call"] for event in end.events if event.type is EventType.TOOL_FINISHED)
    if done != told:
        yield f"results {done}, told of {told}"
    results = Counter(message["toolCallId"] for message in end.branch if message["role"] == "toolResult")
    if any(count > 1 for count in results.values()):
        yield f"calls have several results: {results}"
    turns = sum(event.type is EventType.TURN_RECORDED for event in end.events)
    if turns != end.answers:
        yield f"{end.answers} answers, told of {turns}"


def _said(end: Evidence) -> Iterator[str]:
    """Each message that was accepted is delivered, or waits; once."""
    delivered = Counter(message["content"][0]["text"] for message in end.branch if message["role"] == "user")
    places = delivered + Counter(end.waiting)
    if wrong := {text: places[text] for text in end.said if places[text] != 1}:
        yield f"messages that are not there once: {wrong}"


def _unknown(case: Case) -> Iterator[str]:
    """It stands where it died, before a call that must not be made again."""
    end = case.end
    if end.attempt.state is not AttemptState.FAILED:
        yield f"unknown, and {end.attempt.state}"
    if all(map(case.traces.trial.plan.repeatable, end.open)):
        yield "unknown, and the outcome of each call that must not be made again is known"
    if end.branch != case.whole.branch[: len(end.branch)]:
        yield "what was said before differs"
    if case.deaths and end.entries != case.deaths[-1].entries:
        yield "it went on, although an outcome is unknown"


def _complete(case: Case) -> Iterator[str]:
    """As if nobody had killed anything."""
    end, whole = case.end, case.whole
    if end.open:
        yield f"calls without a result: {sorted(end.open)}"
    if end.waiting:
        yield f"it ended before it heard {end.waiting}"
    if end.branch != whole.branch:
        yield "the messages differ"
    if set(end.effects) != set(whole.effects):
        yield f"effects that nobody had: {sorted(set(whole.effects) - set(end.effects))}"
    if _outcome(end) != _outcome(whole):
        yield f"the outcome is {_outcome(end)}"


def _outcome(evidence: Evidence) -> tuple[Any, ...]:
    outputs: Mapping[str, Any] = evidence.attempt.outputs or {}
    return evidence.attempt.state, evidence.attempt.failure, {**outputs, "session": None}
