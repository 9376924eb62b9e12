"""Names: how users call a namespace's runs, and which they mean."""

from collections.abc import Sequence
from uuid import UUID, uuid5

from pilothouse.cli.command import CommandError
from pilothouse.records.runs import Run
from pilothouse.store.ports import RunStore

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
    runs = await store.runs(tenant, workflow=workflow, limit=_ALL if slash else 1)
    if slash:
        runs = [run for run in runs if str(run.number) == number]
    if not runs and len(name) >= ID_BEGINNING:
        runs = [run for run in await store.runs(tenant, limit=_ALL) if str(run.ref.run).startswith(name)]
    return the_one(runs, name, namespace)


def the_one(runs: Sequence[Run], name: str, namespace: str) -> Run:
    """The run that was found by that name. Raises CommandError where it is none, or one of several."""
    if not runs:
        raise CommandError(f"there is no run `{name}` in namespace {namespace}; see `pilothouse get`")
    if len(runs) > 1:
        raise CommandError(f"several runs have an id that begins with {name}: {', '.join(map(name_of, runs))}")
    return runs[0]


def name_of(run: Run) -> str:
    """The name by which a user calls the run."""
    return f"{run.workflow}/{run.number}"


def typed(run: Run) -> str:
    """The run as it is typed after a command."""
    return name_of(run) if run.namespace == DEFAULT_NAMESPACE else f"{name_of(run)} -n {run.namespace}"
