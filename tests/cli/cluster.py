"""A cluster as the command line meets it: an API server and a gateway on sockets, and kubeconfigs for both."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import yaml

from pilothouse.gateway.app import build_app
from pilothouse.store.postgres import PostgresRunStore
from pilothouse.store.postgres.history import open_history
from tests.cli.apiserver import PROXY, TELL, FakeApiServer
from tests.cli.command import Cli
from tests.gateway.doubles import ANN, BOB, FakeKube
from tests.gateway.serving import CA, served
from tests.store.people import READER, WRITER

CERTIFICATES = Path(__file__).parent / "certificates"
TOKEN = {"token": ANN}
CERTIFICATE = {"client-certificate": str(CERTIFICATES / "client.pem"), "client-key": str(CERTIFICATES / "client.key")}


@dataclass
class Cluster:
    """`team-a` is the namespace of Ann, who may do all that reading and writing take; Bob may do nothing. Its UID is
    also what this machine derives for the name, so `here` reads the very runs that `cli` reads through the gateway."""

    folder: Path
    database: str
    store: PostgresRunStore
    kube: FakeKube
    server: FakeApiServer
    url: str
    gateway: str

    @property
    def tenant(self) -> UUID:
        return self.kube.namespaces["team-a"]

    @property
    def cli(self) -> Cli:
        """The command as Ann calls it."""
        return self.command("--kubeconfig", self.kubeconfig())

    @property
    def here(self) -> Cli:
        """The command on the same database, as if it were this machine's."""
        return self.command("--dsn", self.database, "-n", "team-a")

    def command(self, *where: str, **variables: str) -> Cli:
        return Cli(self.folder, where, {"SSL_CERT_FILE": "", **variables})

    def kubeconfig(self, file: str = "config", user: dict[str, Any] = TOKEN, **changes: Any) -> str:
        """Writes a kubeconfig whose current context is `dev`. Changes are of the cluster's and the context's fields."""
        ca = base64.b64encode(CA.encode()).decode()
        cluster = {"server": self.url, "certificate-authority-data": ca}
        context = {"cluster": "c", "user": "u", "namespace": "team-a"}
        for name, value in changes.items():
            fields = context if name in context else cluster
            fields[name.replace("_", "-")] = value
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(document(cluster, context, user)))
        return str(path)


def document(cluster: dict[str, Any], context: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [{"name": "dev", "context": context}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


@asynccontextmanager
async def cluster_on(
    database: str, store: PostgresRunStore, folder: Path, certificates: bool
) -> AsyncIterator[Cluster]:
    """With `certificates`, the API server talks to those alone who show Carol's."""
    kube = FakeKube(namespaces={"team-a": uuid5(await store.installation(), "namespace team-a")})
    kube.grant("ann", "team-a", "get workflows", *READER, *WRITER)
    rights = {f"{user} {right}" for user in ("ann", "carol") for right in (PROXY, TELL, "get pods/log")}
    clients = CERTIFICATES / "client.pem" if certificates else None
    async with open_history(database) as history, served(build_app(store, history, kube)) as gateway:
        server = FakeApiServer(gateway, {ANN: "ann", BOB: "bob"}, rights, certificates=certificates)
        async with served(server.app, clients=clients) as url:
            yield Cluster(folder, database, store, kube, server, url, gateway)
