"""Names: how users call a namespace's runs, and which they mean."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID, uuid5

from pilothouse.cli.command import CommandError
from pilothouse.records.runs import Run, RunName
from pilothouse.store.ports import RunStore

T = TypeVar("T", Run, RunName)

DEFAULT_NAMESPACE = "default"
"""The namespace of objects and commands that name none."""

ID_BEGINNING = 8
"""Characters of an id by which a run may be called."""

_ALL = 100_000


async def tenant_of(store: RunStore, namespace: str) -> UUID:
    """The tenant of a namespace. Without a cluster it has no UID of its own, so one is derived."""
    return uuid5(await store.installation(), f"namespace {namespace}")


async def find_run(store: RunStore, name: str, namespace: str) -> Run:
    """The run of that name: WORKFLOW (its latest), WORKFLOW/NUMBER, or an id or its beginning."""
    tenant = await tenant_of(store, namespace)
    workflow, slash, number = name.partition("/")
    found = await store.run_names(tenant, workflow=workflow, limit=_ALL if slash else 1)
    if slash:
        found = [run for run in found if str(run.number) == number]
    if not found and len(name) >= ID_BEGINNING:
        found = [run for run in await store.run_names(tenant, limit=_ALL) if str(run.ref.run).startswith(name)]
    return (await store.snapshot(the_one(found, name, namespace).ref)).run


def the_one(runs: Sequence[T], name: str, namespace: str) -> T:
    """The run that was found by that name. Raises CommandError where it is none, or one of several."""
    if not runs:
        raise CommandError(f"there is no run `{name}` in namespace {namespace}; see `pilothouse get`")
    if len(runs) > 1:
        raise CommandError(f"several runs have an id that begins with {name}: {', '.join(map(name_of, runs))}")
    return runs[0]


def name_of(run: Run | RunName) -> str:
    """The name by which a user calls the run."""
    return f"{run.workflow}/{run.number}"


def typed(run: Run) -> str:
    """The run as it is typed after a command."""
    return name_of(run) if run.namespace == DEFAULT_NAMESPACE else f"{name_of(run)} -n {run.namespace}"
