"""The graph of steps: who needs whom, in which order they may run, and what makes an order impossible."""

from collections.abc import Collection, Iterator, Mapping

from pilothouse.api.suggestion import closest


class GraphError(ValueError):
    """The steps cannot be ordered."""


class UnknownNeed(GraphError):  # noqa: N818 - names the need
    """A step needs one that does not exist. `suggestion` is the existing name most like it, if any is."""

    def __init__(self, name: str, need: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(f"step `{name}` needs `{need}`, but there is no such step{hint}")
        self.name = name
        self.need = need
        self.suggestion = suggestion


class CycleError(GraphError):
    """Steps that need each other. `cycle` starts and ends with the same name; each name needs the next."""

    def __init__(self, cycle: tuple[str, ...]) -> None:
        super().__init__(f"the steps need each other: {' -> '.join(cycle)}")
        self.cycle = cycle


class Graph:
    """Steps by name with the names that each needs, checked: every need exists and there is no cycle.

    Raises UnknownNeed or CycleError, for the first such step in the order given.
    """

    def __init__(self, needs: Mapping[str, Collection[str]]) -> None:
        self._needs = {name: tuple(dict.fromkeys(wanted)) for name, wanted in needs.items()}
        self._dependents: dict[str, list[str]] = {name: [] for name in self._needs}
        for name, wanted in self._needs.items():
            for need in wanted:
                self._check_known(name, need)
                self._dependents[need].append(name)
        self._levels = self._order()

    def levels(self) -> list[list[str]]:
        """The steps in levels: a step stands in the first level after all its needs; inside a level they keep
        the order in which they were given."""
        return [list(level) for level in self._levels]

    def needs(self, name: str) -> tuple[str, ...]:
        """The steps that this one needs, as given, each once."""
        return self._needs[name]

    def dependents(self, name: str) -> tuple[str, ...]:
        """The steps that need this one directly, in the order given."""
        return tuple(self._dependents[name])

    def _check_known(self, name: str, need: str) -> None:
        if need not in self._needs:
            raise UnknownNeed(name, need, closest(need, list(self._needs)))

    def _order(self) -> list[list[str]]:
        position = {name: index for index, name in enumerate(self._needs)}
        open_needs = {name: len(wanted) for name, wanted in self._needs.items()}
        level = [name for name, count in open_needs.items() if count == 0]
        levels: list[list[str]] = []
        while level:
            levels.append(level)
            level = sorted(self._freed(level, open_needs), key=position.__getitem__)
        left = [name for name, count in open_needs.items() if count > 0]
        if left:
            raise CycleError(self._cycle(left))
        return levels

    def _freed(self, level: list[str], open_needs: dict[str, int]) -> Iterator[str]:
        for name in level:
            for dependent in self._dependents[name]:
                open_needs[dependent] -= 1
                if open_needs[dependent] == 0:
                    yield dependent

    def _cycle(self, left: list[str]) -> tuple[str, ...]:
        """One cycle among the steps left over: following needs among them must come back to a step."""
        remaining = set(left)
        path: dict[str, int] = {}
        name = left[0]
        while name not in path:
            path[name] = len(path)
            name = next(need for need in self._needs[name] if need in remaining)
        cycle = list(path)[path[name] :]
        first = min(range(len(cycle)), key=lambda index: left.index(cycle[index]))
        return (*cycle[first:], *cycle[:first], cycle[first])
