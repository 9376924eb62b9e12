"""A cluster as the read API sees it: tokens, rights and namespaces that a test makes and takes away."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from pilothouse.gateway.kubeapi import Identity, KubeUnavailable, Unauthenticated

ANN, BOB = "ann-s-token", "bob-s-token"


@dataclass
class FakeKube:
    """Implements KubeApi. A grant is `user verb resource namespace` or the same with `name`; without a name it is
    good for every one, as in RBAC."""

    tokens: dict[str, Identity] = field(default_factory=lambda: {ANN: Identity("ann"), BOB: Identity("bob")})
    grants: set[str] = field(default_factory=set)
    namespaces: dict[str, UUID] = field(default_factory=dict)
    away: bool = False

    def grant(self, user: str, namespace: str, *rights: str) -> None:
        """Each right as `get workflows`, `get pods/log`, `get workflows nightly`."""
        for right in rights:
            verb, resource, *name = right.split()
            self.grants.add(" ".join([user, verb, resource, namespace, *name]))

    def create_namespace(self, name: str) -> UUID:
        """Makes a namespace, or makes it anew."""
        self.namespaces[name] = uuid4()
        return self.namespaces[name]

    async def review(self, token: str, audience: str | None = None) -> Identity:
        self._answer()
        if audience is not None or token not in self.tokens:
            raise Unauthenticated("unknown")
        return self.tokens[token]

    async def allowed(
        self,
        identity: Identity,
        verb: str,
        group: str,
        resource: str,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> bool:
        self._answer()
        assert group == {"workflows": "pilothouse.dev", "pods": ""}[resource]
        what = f"{resource}/{subresource}" if subresource else resource
        right = f"{identity.username} {verb} {what} {namespace}"
        return bool({right, f"{right} {name}" if name else right} & self.grants)

    async def namespace_uid(self, name: str) -> UUID | None:
        self._answer()
        return self.namespaces.get(name)

    def _answer(self) -> None:
        if self.away:
            raise KubeUnavailable("connection refused")
