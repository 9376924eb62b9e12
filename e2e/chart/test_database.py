"""Which database, and where its password and DSN are seen."""

from collections.abc import Iterator

from e2e.chart.rendering import Object, Render, containers

OWN = ("postgres.bundled.enabled=false", "postgres.dsnSecret.name=mine", "postgres.dsnSecret.key=url")


def envs(render: Render) -> Iterator[tuple[str, dict[str, Object]]]:
    for name, pod in render.pods().items():
        for container in containers(pod):
            yield name.split("/")[1], {each["name"]: each for each in container.get("env", [])}


def with_dsn(render: Render) -> dict[str, Object]:
    found = {name: env["PILOTHOUSE_DSN"] for name, env in envs(render) if "PILOTHOUSE_DSN" in env}
    return {name.rsplit("-", 1)[0] if "migrate" in name else name: dsn for name, dsn in found.items()}


def test_those_who_need_the_database_know_it_and_nobody_else() -> None:
    assert set(with_dsn(Render.of())) == {"pilothouse-operator", "pilothouse-gateway", "pilothouse-migrate"}


def test_the_bundled_ones_dsn_is_put_together_from_the_secret_by_the_kubelet() -> None:
    render = Render.of()
    for dsn in with_dsn(render).values():
        assert dsn["value"] == (
            "postgresql://pilothouse:$(PILOTHOUSE_DATABASE_PASSWORD)"
            "@pilothouse-postgres.pilothouse.svc:5432/pilothouse?sslmode=disable"
        )
    for _, env in envs(render):
        if "PILOTHOUSE_DSN" in env:
            order = list(env)
            assert order.index("PILOTHOUSE_DATABASE_PASSWORD") < order.index("PILOTHOUSE_DSN"), (
                "else it is not expanded"
            )


def test_ones_own_comes_from_a_secret_and_nothing_of_the_bundled_one_is_left() -> None:
    render = Render.of(*OWN)
    for dsn in with_dsn(render).values():
        assert dsn["valueFrom"] == {"secretKeyRef": {"name": "mine", "key": "url"}}
    assert not [each for each in render.objects if "postgres" in each["metadata"]["name"]]


def test_the_volume_is_claimed_as_told_or_not_at_all() -> None:
    size = ("postgres.bundled.storage.size=5Gi", "postgres.bundled.storage.className=fast")
    [claim] = Render.of(*size).one("StatefulSet", "pilothouse-postgres")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"] == {"storage": "5Gi"}
    assert claim["spec"]["storageClassName"] == "fast"
    assert "labels" not in claim["metadata"], "a version among them would make an upgrade impossible"
    [default] = Render.of().one("StatefulSet", "pilothouse-postgres")["spec"]["volumeClaimTemplates"]
    assert "storageClassName" not in default["spec"], "an empty name would mean no class at all"
    without = Render.of("postgres.bundled.persistence=false").one("StatefulSet", "pilothouse-postgres")["spec"]
    assert "volumeClaimTemplates" not in without
    assert {"name": "data", "emptyDir": {}} in without["template"]["spec"]["volumes"]


def test_the_installation_is_remembered_as_long_as_its_database_may_be_there() -> None:
    def kept(*values: str) -> bool:
        found = Render.of(*values).one("ConfigMap", "pilothouse-installation")
        assert "data" not in found, "the migrate Job writes it, and an upgrade must not"
        return "helm.sh/resource-policy" in found["metadata"].get("annotations", {})

    assert kept()
    assert kept(*OWN)
    assert not kept("postgres.bundled.persistence=false"), "it would name a database that is gone"
