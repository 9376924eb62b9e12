"""Values that cannot be are refused, with a message that says what to do."""

import pytest

from e2e.chart.rendering import Refused, Render

CONTRADICTIONS = {
    "no database": (["postgres.bundled.enabled=false"], "name the Secret of its DSN in postgres.dsnSecret.name"),
    "two databases": (["postgres.dsnSecret.name=db"], "postgres.bundled.enabled must be false"),
    "own namespace": (["namespaces.served={team-a,pilothouse}"], "serve other namespaces"),
    "latest": (["image.tag=latest"], "name a version, or a digest"),
}

MISTAKES = {
    "unknown": ("operator.replicas=2", "additional properties 'replicas' not allowed"),
    "unknown at the top": ("gateways.replicas=2", "additional properties 'gateways' not allowed"),
    "no gateway": ("gateway.replicas=0", "minimum: got 0, want 1"),
    "pull policy": ("image.pullPolicy=Sometimes", "must be one of 'Always', 'IfNotPresent', 'Never'"),
    "digest": ("image.digest=abc", "does not match pattern"),
    "address": ("networkPolicy.apiServer={10.0.0.1}", "does not match pattern"),
    "namespace": ("namespaces.served={Team_A}", "does not match pattern"),
    "twice": ("namespaces.served={a,a}", "items at 0 and 1 are equal"),
    "policy data": ("policy.data.floors=7", "got number, want string"),
    "few connections": ("postgres.bundled.maxConnections=5", "minimum: got 5, want 30"),
    "size": ("postgres.bundled.storage.size=big", "does not match pattern"),
    "subject": ("gateway.callers[0].kind=Team", "must be one of 'User', 'Group', 'ServiceAccount'"),
    "peer": ("networkPolicy.metricsFrom[0].pods=x", "additional properties 'pods' not allowed"),
}


@pytest.mark.parametrize(("values", "remedy"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_refused_with_a_remedy(values: list[str], remedy: str) -> None:
    with pytest.raises(Refused) as raised:
        Render.of(*values)
    assert remedy in str(raised.value)


@pytest.mark.parametrize(("value", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_by_name(value: str, told: str) -> None:
    with pytest.raises(Refused) as raised:
        Render.of(value)
    assert told in str(raised.value)


@pytest.mark.parametrize("release", ["a" * 41, "with.dot"])
def test_a_release_name_that_makes_impossible_names_is_refused(release: str) -> None:
    with pytest.raises(Refused, match="choose"):
        Render.of(release=release)


def test_the_longest_release_name_makes_names_that_kubernetes_takes() -> None:
    render = Render.of(release="a" * 40)
    limits = {"Service": 63, "Job": 63, "StatefulSet": 52}  # a Pod of a StatefulSet gets a number and a revision
    for each in render.objects:
        assert len(each["metadata"]["name"]) <= limits.get(each["kind"], 253)
        assert all(len(value) <= 63 for value in each["metadata"]["labels"].values())


def test_a_chart_of_others_may_contain_this_one() -> None:
    Render.of("global.whatever=1")
