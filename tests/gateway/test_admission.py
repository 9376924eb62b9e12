"""Which Pod is admitted to the store API: one that is there, with our token, and that carries an open attempt of its
own namespace. Everybody else hears the same."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from pilothouse.gateway.admission import AUDIENCE
from pilothouse.gateway.kubeapi import Identity
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import StoreUnavailable
from tests.gateway.desk import Desk, carried_attempt
from tests.gateway.doubles import POD_UID, service_account
from tests.store.samples import created, open_attempt, replaced

NOBODY = {"type": "Unauthenticated", "message": "this request bears no token that is accepted here"}
NOT_HERE = {"type": "Forbidden", "message": "the bearer of this token may not do that here"}


async def test_a_pod_is_admitted_to_the_attempt_that_it_carries(desk: Desk) -> None:
    answer = await desk.exchange()
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert body["expires_in"] == 600
    assert body["attempt"] == {
        "tenant": str(desk.ref.run.tenant),
        "run": str(desk.ref.run.run),
        "attempt": str(desk.ref.attempt),
        "fence": desk.ref.fence,
    }
    session = await desk.post("open_session", body["token"], f'{{"session":"{uuid4()}"}}')
    assert session.json() == {"leaf": None, "entries": []}


def known(desk: Desk, identity: Identity) -> str:
    token = f"projected-{uuid4()}"
    desk.kube.tokens[token, AUDIENCE] = identity
    return token


async def deleted_pod(desk: Desk) -> str:
    desk.kube.delete(desk.projected)
    return desk.projected


async def pod_without_attempt(desk: Desk) -> str:
    return desk.kube.pod(str(uuid4()))


async def pod_of_another_audience(desk: Desk) -> str:
    ref = await open_attempt(desk.store, await created(desk.store))
    await desk.store.carry(ref, 1, "pod-7")
    return desk.kube.pod("pod-7", audience="https://kubernetes.default.svc")


async def own_pod(desk: Desk, namespace: str = "team-a", **changes: Any) -> str:
    """Another token of an attempt's own Pod, with what is changed about its owner."""
    ref = await open_attempt(desk.store, await created(desk.store))
    await desk.store.carry(ref, 1, "pod-8")
    return known(desk, replace(service_account(namespace, {POD_UID: ("pod-8",)}), **changes))


STRANGERS: dict[str, tuple[dict[str, str], Callable[[Desk], Awaitable[str]]]] = {
    "a token that nobody made": (NOBODY, lambda desk: _said("made-up")),
    "the token of a Pod that was deleted": (NOBODY, deleted_pod),
    "a token for another audience": (NOBODY, pod_of_another_audience),
    "an attempt token": (NOBODY, lambda desk: desk.token()),
    "a Pod that carries no attempt": (NOT_HERE, pod_without_attempt),
    "a Pod of another namespace than its run": (NOT_HERE, lambda desk: own_pod(desk, "team-b")),
    "a namespace that only begins alike": (NOT_HERE, lambda desk: own_pod(desk, "team-a-2")),
    "a token that is bound to no Pod": (NOT_HERE, lambda desk: own_pod(desk, extra={})),
    "a token that is bound to an empty Pod": (NOT_HERE, lambda desk: own_pod(desk, extra={POD_UID: ("",)})),
    "a token with two Pods": (NOT_HERE, lambda desk: own_pod(desk, extra={POD_UID: ("pod-8", "pod-9")})),
    "a Pod's UID that no column can hold": (NOT_HERE, lambda desk: own_pod(desk, extra={POD_UID: ("pod\0",)})),
    "a person who names a Pod": (NOT_HERE, lambda desk: own_pod(desk, username="ann")),
    "a person with an account's name": (NOT_HERE, lambda desk: own_pod(desk, username="ann:team-a:x")),
    "a node": (NOT_HERE, lambda desk: own_pod(desk, username="system:node:a")),
    "an account without a name": (NOT_HERE, lambda desk: own_pod(desk, username="system:serviceaccount:team-a:")),
    "an account with colons": (NOT_HERE, lambda desk: own_pod(desk, username="system:serviceaccount:team-a:x:y")),
}


async def _said(token: str) -> str:
    return token


@pytest.mark.parametrize(("answer", "stranger"), STRANGERS.values(), ids=STRANGERS.keys())
async def test_a_stranger_is_refused(
    desk: Desk, answer: dict[str, str], stranger: Callable[[Desk], Awaitable[str]]
) -> None:
    refused = await desk.exchange(await stranger(desk))
    assert refused.status_code == (401 if answer is NOBODY else 403)
    assert refused.json() == answer


async def test_the_helper_makes_pods_that_are_admitted(desk: Desk) -> None:
    assert (await desk.exchange(await own_pod(desk))).status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "projected"])
async def test_a_request_without_a_bearer_token_is_refused_unasked(desk: Desk, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = await desk.client.post("token", headers=headers)
    assert (answer.status_code, answer.json()) == (401, NOBODY)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert desk.kube.reviews == 0


async def test_each_exchange_asks_anew_so_that_a_deleted_pod_gets_nothing(desk: Desk) -> None:
    assert (await desk.exchange()).status_code == 200
    desk.kube.delete(desk.projected)
    assert (await desk.exchange()).status_code == 401


@pytest.mark.parametrize("end", ["replaced", "finished"])
async def test_a_pod_whose_attempt_is_over_is_told_so(desk: Desk, end: str) -> None:
    if end == "replaced":
        await replaced(desk.store, desk.ref)
    else:
        await desk.store.attempt_store(desk.ref).finish(AttemptState.SUCCEEDED)
    answer = await desk.exchange()
    assert (answer.status_code, answer.json()["type"]) == (403, "Superseded")


async def test_while_the_api_server_is_away_nobody_is_admitted(desk: Desk) -> None:
    desk.kube.away = True
    answer = await desk.exchange()
    assert (answer.status_code, answer.json()["type"]) == (503, "KubeUnavailable")
    assert answer.headers["Retry-After"] == "1"


async def test_a_known_attempt_goes_on_while_the_api_server_is_away(desk: Desk) -> None:
    token = await desk.token()
    desk.kube.away = True
    assert (await desk.post("put_blob", token, b"x")).status_code == 200


async def test_while_the_store_is_away_nobody_is_admitted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(carrier: str, namespace: str) -> None:
        raise StoreUnavailable("PostgreSQL at 10.1.2.3 cannot be reached")

    monkeypatch.setattr(desk.store, "carried", away)
    answer = await desk.exchange()
    assert answer.status_code == 503
    assert answer.json() == {"type": "StoreUnavailable", "message": "the store is away; try again"}
    assert answer.headers["Retry-After"] == "1"


async def test_two_pods_of_two_tenants_get_two_attempts(desk: Desk) -> None:
    theirs, their_token = await carried_attempt(desk.store, desk.kube)
    ours, other = (await desk.exchange()).json(), (await desk.exchange(their_token)).json()
    assert ours["attempt"]["attempt"] == str(desk.ref.attempt)
    assert other["attempt"]["attempt"] == str(theirs.attempt)
