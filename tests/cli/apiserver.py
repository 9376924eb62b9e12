"""A server that does what the API server of a cluster does for the command line: it knows its users, asks for their
rights, keeps `Authorization` to itself, and passes on to the gateway or reads the log of a Pod."""

import ssl
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gateway.serving import CA

PROXY, TELL = "get services/proxy", "create services/proxy"
_KEPT = ("authorization", "host", "accept-encoding", "connection")


@dataclass
class FakeApiServer:
    """`users` by token; whoever shows none is `carol`, if her certificate got her here. `rights` are `user right`.
    `gateway` is its address, None while no Pod of it is ready; `pods` are logs by namespace and name."""

    gateway: str | None = None
    users: dict[str, str] = field(default_factory=dict)
    rights: set[str] = field(default_factory=set)
    pods: dict[str, bytes] = field(default_factory=dict)
    certificates: bool = False
    seen: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request that reached the gateway."""
    losing: int = 0
    """How many answers to writes are still to be lost on the way back."""

    @property
    def app(self) -> Starlette:
        service = "/api/v1/namespaces/{namespace}/services/{service}/proxy/{path:path}"
        pod = "/api/v1/namespaces/{namespace}/pods/{pod}/log"
        return Starlette(routes=[Route(service, self._proxy, methods=["GET", "POST"]), Route(pod, self._log)])

    async def _proxy(self, request: Request) -> Response:
        right = PROXY if request.method == "GET" else TELL
        if refusal := self._refusal(request, right, "services", request.path_params["service"], "services/proxy"):
            return refusal
        namespace, service = request.path_params["namespace"], request.path_params["service"]
        if (namespace, service) != ("pilothouse", "https:pilothouse-gateway:https"):
            return _status(404, "NotFound", f'services "{service.split(":")[1]}" not found')
        if self.gateway is None:
            return _status(
                503, "ServiceUnavailable", 'no endpoints available for service "https:pilothouse-gateway:https"'
            )
        headers = {name: value for name, value in request.headers.items() if name not in _KEPT}
        self.seen.append(headers)
        trust = ssl.create_default_context(cadata=CA)
        async with httpx.AsyncClient(verify=trust, trust_env=False, timeout=30) as http:
            url = f"{self.gateway}/{request.path_params['path']}"
            body = await request.body()
            answer = await http.request(request.method, url, params=request.query_params, headers=headers, content=body)
        if request.method == "POST" and self.losing:
            self.losing -= 1
            return _status(504, "Timeout", "the gateway gave no answer in time")
        return Response(answer.content, answer.status_code, {"content-type": answer.headers["content-type"]})

    async def _log(self, request: Request) -> Response:
        if refusal := self._refusal(request, "get pods/log", "pods", request.path_params["pod"], "pods/log"):
            return refusal
        assert request.query_params["container"] == "main"
        log = self.pods.get("{namespace}/{pod}".format(**request.path_params))
        if log is None:
            return _status(404, "NotFound", f'pods "{request.path_params["pod"]}" not found')
        return Response(log, media_type="text/plain")

    def _refusal(self, request: Request, right: str, plural: str, name: str, resource: str) -> Response | None:
        """In the words of a real API server."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.users.get(token) if scheme else "carol" if self.certificates else None
        if user is None:
            return _status(401, "Unauthorized", "Unauthorized")
        if f"{user} {right}" in self.rights:
            return None
        where = f'in API group "" in the namespace "{request.path_params["namespace"]}"'
        cannot = f'User "{user}" cannot {right.split()[0]} resource "{resource}" {where}'
        return _status(403, "Forbidden", f'{plural} "{name}" is forbidden: {cannot}')


def _status(code: int, reason: str, message: str) -> Response:
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return JSONResponse(body | {"message": message, "reason": reason, "code": code}, code)
