"""The way from a person's kubeconfig to the gateway: through the API server's service proxy, or straight to its URL.

The API server keeps `Authorization` to itself, so the token that the gateway is to see travels in a header of its own.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from pilothouse.cli.access import Access, Answer, Target
from pilothouse.gateway.read.wire import ROOT, TOKEN_HEADER
from pilothouse.records.runs import Attempt, Run
from pilothouse.store.errors import StoreError, StoreUnavailable, StoreUnusable
from pilothouse_operator.kube.credentials import Credentials
from pilothouse_operator.kube.kubeconfig import choose
from pilothouse_operator.names import pod_name
from pilothouse_operator.pods import COMMAND, MAIN

TIMEOUT = httpx.Timeout(10, read=40)
"""Seconds: an answer takes as long as the gateway waits for a change, and then some."""

LOG_LIMIT = 16 * 1024 * 1024
"""Bytes of a running container's log that are read."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SERVICE = re.compile(r"([a-z0-9][-a-z0-9]{0,62})/([a-z0-9][-a-z0-9]{0,62})")
_AWAY = frozenset({408, 429, 500, 502, 503, 504})


@asynccontextmanager
async def open_access(target: Target) -> AsyncIterator[Access]:
    """Raises StoreUnusable where the kubeconfig, its context or the gateway's name cannot be used."""
    straight = "://" in target.gateway
    chosen = None if straight and target.token and not _named(target) else choose(target.kubeconfig, target.context)
    credentials = Credentials(chosen) if chosen else None
    if straight:
        async with httpx.AsyncClient(timeout=TIMEOUT) as http:
            yield _Straight(
                _Client(http, f"the gateway at {target.gateway}"), _url(target.gateway), target, credentials
            )
    else:
        assert credentials is not None  # noqa: S101 - chosen above
        async with _cluster_client(credentials) as client:
            yield _Proxied(client, _service(target.gateway), target, credentials)


def _named(target: Target) -> bool:
    return target.context is not None or target.kubeconfig is not None


def _url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
        raise StoreUnusable(f"--gateway {text}: the token is shown over https:// only")
    if not url.hostname or url.username or url.query or url.fragment:
        raise StoreUnusable(f"--gateway {text}: write it as https://HOST or https://HOST/PATH")
    return text.rstrip("/")


def _service(text: str) -> tuple[str, str]:
    if (found := _SERVICE.fullmatch(text)) is None:
        raise StoreUnusable(f"--gateway {text}: write it as NAMESPACE/SERVICE or as https://HOST")
    return found[1], found[2]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question; with a body, a write."""

    path: str
    query: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Client:
    """Sends requests, and says what keeps answers away. `whom` is who was asked, for the message."""

    http: httpx.AsyncClient
    whom: str
    extensions: Mapping[str, Any] = field(default_factory=dict)

    async def send(self, asked: _Asked, url: str, headers: Mapping[str, str]) -> httpx.Response:
        method = "GET" if asked.body is None else "POST"
        told = headers if asked.body is None else {**headers, "Content-Type": "application/json"}
        try:
            return await self.http.request(
                method, url, params=asked.query, content=asked.body, headers=told, extensions=dict(self.extensions)
            )
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
            raise StoreUnusable(f"{self.whom} cannot be asked: {url} is no URL of a server") from None
        except httpx.TransportError as error:
            raise self._kept_away(error) from None

    def _kept_away(self, error: httpx.TransportError) -> StoreError:
        reason = str(error) or ("no answer in time" if isinstance(error, httpx.TimeoutException) else "it hung up")
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return StoreUnusable(f"{self.whom} cannot be trusted: {reason}")
        return StoreUnavailable(f"{self.whom} cannot be reached: {reason}")


@asynccontextmanager
async def _cluster_client(credentials: Credentials) -> AsyncIterator[_Client]:
    chosen = credentials.chosen
    name = chosen.cluster.get("tls-server-name")
    trust, proxy = await credentials.trust(), chosen.cluster.get("proxy-url")
    async with httpx.AsyncClient(timeout=TIMEOUT, verify=trust, proxy=proxy) as http:
        whom = f"the cluster of context `{chosen.name}` at {chosen.config.cluster.server}"
        yield _Client(http, whom, {"sni_hostname": name} if name else {})


class _Straight:
    """A gateway at a URL of its own."""

    def __init__(self, client: _Client, url: str, target: Target, credentials: Credentials | None) -> None:
        self._client = client
        self._url = url
        self._token = _Token(target, credentials)
        self.namespace = credentials.chosen.config.namespace if credentials else "default"

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        return await self._answer(_Asked(path, query))

    async def post(self, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        return await self._answer(_Asked(path, query, body))

    async def _answer(self, asked: _Asked) -> Answer:
        response = await self._ask(asked)
        if response.status_code == 401 and await self._token.renew():
            response = await self._ask(asked)
        if (answer := _of_gateway(response)) is None:
            raise _unclear(response, f"what answers at {self._url} is no gateway of Pilothouse")
        return answer

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        raise StoreUnusable("a gateway that is named by its URL has only what is kept; try `kubectl logs`")

    async def _ask(self, asked: _Asked) -> httpx.Response:
        headers = {"Authorization": f"Bearer {await self._token.get()}"}
        return await self._client.send(asked, f"{self._url}{ROOT}/{asked.path}", headers)


class _Proxied:
    """A gateway behind the API server of a context."""

    def __init__(self, client: _Client, service: tuple[str, str], target: Target, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials
        self._token = _Token(target, credentials)
        self._place, self._service = service
        self._server = credentials.chosen.config.cluster.server.rstrip("/")
        self._context = credentials.chosen.name
        self.namespace = credentials.chosen.config.namespace

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        return await self._answer(_Asked(self._proxy(path), query), "get")

    async def post(self, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        return await self._answer(_Asked(self._proxy(path), query, body), "create")

    async def _answer(self, asked: _Asked, verb: str) -> Answer:
        response = await self._ask(asked, shown=True)
        if (answer := _of_gateway(response)) is None:
            raise self._refused(response, self._forbidden(verb), self._missing())
        return answer

    def _proxy(self, path: str) -> str:
        return f"/api/v1/namespaces/{self._place}/services/https:{self._service}:https/proxy{ROOT}/{path}"

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        path = f"/api/v1/namespaces/{run.namespace}/pods/{pod_name(run.workflow, attempt)}/log"
        query = {"container": MAIN[COMMAND], "limitBytes": str(LOG_LIMIT)}
        response = await self._ask(_Asked(path, query), shown=False)
        if response.status_code in (400, 404):  # not begun, or gone: then its log is about to be kept
            return b""
        if response.status_code != 200:
            lacking = f"`kubectl --context {self._context} auth can-i get pods --subresource=log -n {run.namespace}`"
            raise self._refused(response, f"{lacking} says why", "")
        return response.content

    async def _ask(self, asked: _Asked, shown: bool) -> httpx.Response:
        """Once more with a new token where the old one has expired. `shown`: the token goes on to the gateway."""
        url = self._server + asked.path
        response = await self._client.send(asked, url, await self._headers(shown))
        if response.status_code == 401 and await self._token.renew():
            response = await self._client.send(asked, url, await self._headers(shown))
        return response

    async def _headers(self, shown: bool) -> Mapping[str, str]:
        own = (await self._credentials.issued()).token
        authorization = {"Authorization": f"Bearer {own}"} if own else {}
        return authorization | ({TOKEN_HEADER: await self._token.get()} if shown else {})

    def _refused(self, response: httpx.Response, forbidden: str, missing: str) -> StoreError:
        """What the API server means, who speaks in the gateway's place."""
        match response.status_code:
            case 401:
                whoami = f"`kubectl --context {self._context} auth whoami`"
                return StoreUnusable(
                    f"the cluster does not accept the credentials of context `{self._context}`: sign in as you do for "
                    f"kubectl; {whoami} tells whether it knows you"
                )
            case 403:
                return StoreUnusable(f"the cluster refuses: {_said(response)}; {forbidden}")
            case 404:
                return StoreUnusable(missing)
        return _unclear(response, f"{self._client.whom} does not give an answer of the gateway")

    def _forbidden(self, verb: str) -> str:
        asked = f"auth can-i {verb} services/https:{self._service}:https --subresource=proxy -n {self._place}"
        return f"`kubectl --context {self._context} {asked}` must say yes"

    def _missing(self) -> str:
        where = f"namespace {self._place} has no Service {self._service} with a port named https"
        return f"{where}: is Pilothouse installed elsewhere? --gateway NAMESPACE/SERVICE names its gateway"


class _Token:
    """The token that the gateway sees: the one that was given, else the context's own."""

    def __init__(self, target: Target, credentials: Credentials | None) -> None:
        self._given = target.token
        self._credentials = credentials

    async def get(self) -> str:
        if self._given is not None:
            return self._given
        assert self._credentials is not None  # noqa: S101 - one of both is there
        if token := (await self._credentials.issued()).token:
            return token
        name = self._credentials.chosen.name
        raise StoreUnusable(
            f"the gateway knows its callers by their tokens, and context `{name}` has none: name one with --token-file "
            f"FILE, or with - for standard input, such as `kubectl --context {name} create token SERVICEACCOUNT` prints"
        )

    async def renew(self) -> bool:
        return self._credentials is not None and await self._credentials.renew()


def _of_gateway(response: httpx.Response) -> Answer | None:
    """The answer, if the gateway gave it; None where something on the way did."""
    if response.status_code == 200:
        return Answer(200, response.content)
    body = _json(response)
    if isinstance(body, dict) and isinstance(body.get("type"), str) and isinstance(body.get("message"), str):
        return Answer(response.status_code, response.content)
    return None


def _unclear(response: httpx.Response, message: str) -> StoreError:
    kind = StoreUnavailable if response.status_code in _AWAY else StoreUnusable
    return kind(f"{message}: HTTP {response.status_code} {_said(response)}".rstrip())


def _said(response: httpx.Response) -> str:
    """The message of a Status object, or the beginning of what else was answered."""
    body = _json(response)
    text = str(body.get("message", "")) if isinstance(body, dict) else response.text
    return " ".join(text.split())[:300]


def _json(response: httpx.Response) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None
