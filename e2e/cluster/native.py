"""The native one-node cluster: processes of this machine in one network namespace."""

import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from e2e.cluster import (
    binaries,
    cgroups,
    configuration,
    containerd,
    leftovers,
    mounts,
    network,
    objects,
    pki,
    prerequisites,
    processes,
    state,
)
from e2e.cluster.clients import Kubectl
from e2e.cluster.commands import say, tail, wait_for
from e2e.cluster.components import Component, Options, components
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import Layout
from e2e.cluster.processes import Process
from e2e.cluster.state import State


class NativeCluster:
    """Makes, unmakes and disturbs the native cluster of a layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._kubectl = Kubectl(layout)

    def up(self, options: Options) -> None:
        """Makes the cluster, or what is missing of it. When this returns its node is Ready and its services answer."""
        prerequisites.require(prerequisites.CLUSTER)
        programs = binaries.ensure(self._layout, (*binaries.NODE, *binaries.CLIENTS))
        with state.exclusively(self._layout):
            if self._is_up(options):
                say(f"already running at {self._layout.server}")
            else:
                self._continue_or_clear(options)
                self._start_all(programs)
            objects.ensure(self._layout)
            self._await_services()

    def down(self) -> None:
        """Ends the cluster and removes all of it but its logs, whatever state it is in."""
        with state.exclusively(self._layout):
            self._clear()

    def _clear(self) -> None:
        layout = self._layout
        while found := processes.marked(layout.run):  # again, as one may have started another meanwhile
            for process in found:
                processes.kill(layout.run, process)
        cgroups.remove(layout.cgroup)
        mounts.remove(layout.run, layout.runtime)
        network.remove(layout)
        leftovers.remove(layout)
        for entry in layout.run.glob("*"):
            if entry != layout.logs:
                _remove(entry)
        shutil.rmtree(layout.runtime, ignore_errors=True)

    def status(self) -> dict[str, str]:
        """What each component does."""
        found = {part.name: self._process(part) for part in self._components()}
        return {name: f"running, process {each.pid}" if each else "not running" for name, each in found.items()}

    def start(self, name: str) -> None:
        """Starts a component unless it runs."""
        self._start(self._component(name), binaries.folder(self._layout))

    def stop(self, name: str) -> None:
        """Ends a component as an administrator would; it stays away until `start`."""
        if process := self._process(self._component(name)):
            processes.stop(self._layout.run, process)

    def kill(self, name: str) -> None:
        """Ends a component with SIGKILL; it stays away until `start`."""
        if process := self._process(self._component(name)):
            processes.kill(self._layout.run, process)

    def kill_container(self, id_: str) -> None:
        """Ends a container of a Pod with SIGKILL."""
        containerd.kill(self._layout, id_)

    def has(self, image: str) -> bool:
        """Tells whether the node has an image of this name."""
        return containerd.has(self._layout, image)

    def load(self, archive: Path) -> None:
        """Takes the image of an archive onto the node."""
        containerd.load(self._layout, archive)

    def tag(self, image: str, name: str) -> None:
        """Gives an image of the node a second name."""
        containerd.tag(self._layout, image, name)

    def _is_up(self, options: Options) -> bool:
        record, wanted = State.load(self._layout), self._record(options)
        whole = record == wanted and self._can_continue(record, wanted)
        return whole and all(map(self._process, self._components()))

    def _record(self, options: Options) -> State:
        programs = binaries.folder(self._layout).name
        return State("native", self._layout.server, programs, options.mutating_admission_policy, state.boot())

    def _continue_or_clear(self, options: Options) -> None:
        """Leaves what an interrupted cluster can go on with; otherwise clears the place and lays the base anew."""
        record, wanted = State.load(self._layout), self._record(options)
        if not self._can_continue(record, wanted):
            self._clear()
            _remove(self._layout.logs)
            self._layout.logs.mkdir(parents=True)
            network.make(self._layout)
            pki.ensure(self._layout)
        elif record != wanted:
            self.stop("apiserver")
        wanted.save(self._layout)
        configuration.write(self._layout)
        cgroups.make(self._layout.cgroup)

    def _can_continue(self, record: State | None, wanted: State) -> bool:
        return (
            record is not None
            and (record.kind, record.programs, record.boot) == (wanted.kind, wanted.programs, wanted.boot)
            and self._layout.pki.exists()
            and network.exists(self._layout)
        )

    def _start_all(self, programs: Path) -> None:
        for component in self._components():
            self._start(component, programs)
            if component.name == "apiserver":
                self._await(component, lambda: self._kubectl.succeeds("get", "--raw", "/readyz"))
            if component.name == "containerd":
                self._await(component, lambda: containerd.answers(self._layout))
                containerd.load_pause(self._layout, programs / "pause")
            if component.name == "kubelet":
                self._await(component, lambda: self._kubectl.succeeds("get", "node", self._layout.name))

    def _start(self, component: Component, programs: Path) -> None:
        if self._process(component) is None:
            program = programs / component.program
            words = (str(program) if program.exists() else component.program, *component.arguments)
            command = (*network.entering(self._layout), *words)
            processes.start(self._layout.run, component.name, command, component.program, self._log(component))

    def _await_services(self) -> None:
        """Returns once a Pod would run and reach its Services."""
        self._kubectl.wait("condition=Ready", f"node/{self._layout.name}", seconds=90)
        self._kubectl.wait("create", "serviceaccount/default")
        for part, port, path in (("proxy", 10256, "healthz"), ("dns", 8181, "ready"), ("netpol", 20244, "healthz")):
            url = f"http://{self._layout.address}:{port}/{path}"
            self._await(self._component(part), lambda url=url: _answers(url))  # type: ignore[misc]

    def _await(self, component: Component, holds: Callable[[], bool]) -> None:
        def checked() -> bool:
            if self._process(component) is None:
                raise ClusterError(f"{component.name} ended by itself:\n{self._end_of_log(component)}")
            return holds()

        wait_for(f"{component.name} is ready", checked, 90, lambda: self._end_of_log(component))

    def _components(self) -> tuple[Component, ...]:
        record = State.load(self._layout)
        return components(self._layout, Options(record is not None and record.mutating_admission_policy))

    def _component(self, name: str) -> Component:
        return next(part for part in self._components() if part.name == name)

    def _process(self, component: Component) -> Process | None:
        return processes.find(self._layout.run, component.name, component.program)

    def _log(self, component: Component) -> Path:
        return self._layout.logs / f"{component.name}.log"

    def _end_of_log(self, component: Component) -> str:
        return tail(self._log(component).read_text(errors="replace"))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310  # our own node's address
            return True
    except (urllib.error.URLError, OSError):
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
