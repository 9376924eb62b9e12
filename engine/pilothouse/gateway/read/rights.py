"""Who asks, and whether he may: the caller's own token, judged by the cluster at each request.

The rights to read are those of `kubectl` on the Workflow that a run belongs to; those to write to a session have a
resource of their own, as no right to a Workflow means them. A refusal depends on what was asked for alone,
never on what is there, so nobody learns of a run that he may not read.
"""

from dataclasses import dataclass
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from pilothouse.api.base import GROUP
from pilothouse.gateway.answers import json_answer
from pilothouse.gateway.kubeapi import Identity, KubeApi, Unauthenticated, bearer
from pilothouse.gateway.read.wire import TOKEN_HEADER
from pilothouse.gateway.refusals import Forbidden
from pilothouse.store.remote.problems import problem

SESSIONS, MESSAGES = "sessions", "messages"
"""What the rights to write are for: a resource and a subresource that only RBAC knows."""

LONGEST_TOKEN = 16 * 1024
"""Characters of a token that is looked at."""


class Lacking(Forbidden):
    """The caller lacks a right; unlike other refusals this one may say which, for it says what he asked for."""


async def lacking(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in Lacking."""
    request.state.refusal = "no right"
    return json_answer(problem("Forbidden", str(error)), 403)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks for runs of one namespace."""

    kube: KubeApi
    identity: Identity
    namespace: str

    @classmethod
    async def of(cls, kube: KubeApi, request: Request, namespace: str) -> "Caller":
        """Raises Unauthenticated for a token that the API server does not take for its own users'."""
        return cls(kube, await kube.review(_token(request)), namespace)

    async def must_list(self) -> None:
        """Raises Lacking unless he may list the namespace's Workflows."""
        if not await self._may("list", GROUP, "workflows"):
            raise self._lacking("list", f"workflows.{GROUP}")

    async def must_get(self, workflow: str, told: bool) -> None:
        """Raises Lacking unless he may get that Workflow; the message names it only where he `told` its name."""
        if not await self._may("get", GROUP, "workflows", workflow):
            raise self._lacking("get", f"workflows.{GROUP}" + (f"/{workflow}" if told else ""))

    async def must_read_logs(self) -> None:
        """Raises Lacking unless he may read what the namespace's Pods print."""
        if not await self._may("get", "", "pods", subresource="log"):
            raise self._lacking("get", "pods", "log")

    async def must_read_sessions(self) -> None:
        """Raises Lacking unless he may list the namespace's Workflows and read what its Pods print: a session may be
        of any of them."""
        await self.must_list()
        await self.must_read_logs()

    async def must_import(self) -> None:
        """Raises Lacking unless he may create sessions."""
        if not await self._may("create", GROUP, SESSIONS):
            raise self._lacking("create", f"{SESSIONS}.{GROUP}")

    async def must_write(self, verb: str, session: UUID) -> None:
        """Raises Lacking unless he may do that to messages of the session: `create` or `delete` them."""
        if not await self._may(verb, GROUP, SESSIONS, str(session), MESSAGES):
            raise self._lacking(verb, f"{SESSIONS}.{GROUP}/{session}", MESSAGES)

    async def must_know_the_tenant(self, session: UUID | None) -> None:
        """Raises Lacking unless he may import sessions, write to that session (to any, where it is None), or list the
        namespace's Workflows."""
        name = str(session) if session else ""
        if not (
            await self._may("create", GROUP, SESSIONS, name, MESSAGES) or await self._may("create", GROUP, SESSIONS)
        ):
            await self.must_list()

    async def _may(self, verb: str, group: str, resource: str, name: str = "", subresource: str = "") -> bool:
        return await self.kube.allowed(self.identity, verb, group, resource, self.namespace, name, subresource)

    def _lacking(self, verb: str, what: str, subresource: str = "") -> Lacking:
        wanted = f"{what}/{subresource}" if subresource else what
        option = f" --subresource={subresource}" if subresource else ""
        return Lacking(
            f"{self.identity.username} may not {verb} {wanted} in namespace {self.namespace}; "
            f"`kubectl auth can-i {verb} {what}{option} -n {self.namespace}` tells the same"
        )


def _token(request: Request) -> str:
    """The token of either header. Two of them that differ are nobody's: which one was meant is not known."""
    given = request.headers.getlist(TOKEN_HEADER)
    given += [bearer(header) for header in request.headers.getlist("Authorization")]
    tokens = {token.strip() for token in given}
    if len(tokens) != 1 or not 0 < len(token := tokens.pop()) <= LONGEST_TOKEN:
        raise Unauthenticated("no single token")
    return token
