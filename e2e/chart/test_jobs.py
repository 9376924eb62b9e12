"""The migrate Job runs anew exactly when what it runs changes; the check knows it by name."""

from e2e.chart.rendering import Render, containers


def migrate(*values: str) -> str:
    [name] = [name for name in Render.of(*values).names("Job") if "migrate" in name]
    return name


def test_its_name_stays_while_its_spec_stays() -> None:
    assert migrate() == migrate()
    assert migrate() == migrate("gateway.replicas=3", "operator.resources.limits.memory=1Gi")


def test_its_name_changes_with_all_that_its_spec_says() -> None:
    names = [
        migrate(),
        migrate("image.tag=v2"),
        migrate("jobs.resources.limits.memory=1Gi"),
        migrate("imagePullSecrets[0].name=pull"),
        migrate("postgres.bundled.enabled=false", "postgres.dsnSecret.name=db"),
        migrate("postgres.bundled.enabled=false", "postgres.dsnSecret.name=other"),
    ]
    assert len(set(names)) == len(names)


def test_it_is_no_hook_so_that_every_tool_installs_it_alike() -> None:
    render = Render.of()
    assert "annotations" not in render.one("Job", migrate())["metadata"]


def test_the_check_looks_at_this_releases_job_and_ends_before_helm_gives_up() -> None:
    job = Render.of().one("Job", "pilothouse-check")
    [container] = containers(job["spec"]["template"]["spec"])
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env["PILOTHOUSE_MIGRATE_JOB"] == migrate()
    assert int(env["PILOTHOUSE_CHECK_SECONDS"]) < 300
    limit = job["spec"]["template"]["spec"]["activeDeadlineSeconds"]
    assert int(env["PILOTHOUSE_CHECK_SECONDS"]) < limit <= 300
    assert "activeDeadlineSeconds" not in job["spec"], "at its own deadline a Job deletes its Pod, and what that tells"
    assert job["spec"]["backoffLimit"] == 0
    assert not [name for name in Render.of("check.enabled=false").names("Job") if "check" in name]
