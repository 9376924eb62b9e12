"""What is wrong with a set of manifest files, in sentences for the user."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pilothouse.api.agent import Agent
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow
from pilothouse.cli.configdata import ConfigMap, Secret
from pilothouse.cli.finding import Finding
from pilothouse.cli.manifests import Manifests, read
from pilothouse.workflows.checks.check import check
from pilothouse.workflows.checks.references import Known
from pilothouse.workflows.expressions.evaluator import Evaluator

SHOWN = 20
"""Problems of one document that are told."""


async def validate(paths: Iterable[str | Path], namespace: str = "default") -> list[str]:
    """One line for each problem of the files, as `release.yaml:14: document 2: spec.steps[2].when: must be …`;
    none where all is well. Never raises for what a user wrote."""
    manifests = await asyncio.to_thread(read, list(paths), namespace)
    async with Evaluator() as evaluator:
        return told(await examine(manifests, evaluator))


async def examine(manifests: Manifests, evaluator: Evaluator) -> list[Finding]:
    """What is wrong with the files, and with each object among the others."""
    findings = list(manifests.findings)
    for manifest in manifests.all:
        if isinstance(manifest.object, Workflow | Agent | Pack | ToolApproval):
            problems = await check(manifest.object, known(manifests, manifest.namespace), evaluator)
            findings += map(manifest.source.finding, problems)
    return findings


def known(manifests: Manifests, namespace: str) -> Known:
    """The objects of a namespace as far as the files tell.

    While some documents cannot be read, nobody knows what they hold. Secrets often stay out of files, so they are
    known only where the files hold some.
    """
    if manifests.findings:
        return Known()
    secrets = manifests.named(Secret, namespace)
    return Known(
        agents={name: agent.spec for name, agent in manifests.named(Agent, namespace).items()},
        config_maps={name: config.values.keys() for name, config in manifests.named(ConfigMap, namespace).items()},
        secrets={name: secret.values.keys() for name, secret in secrets.items()} if secrets else None,
    )


def told(findings: Sequence[Finding]) -> list[str]:
    """The findings as lines: by file, by document, by line."""
    files = {file: index for index, file in enumerate(dict.fromkeys(finding.file for finding in findings))}
    ordered = sorted(findings, key=lambda finding: (files[finding.file], finding.document or 0, finding.line or 0))
    return [line for _, group in groupby(ordered, _document) for line in _lines(list(group))]


def _document(finding: Finding) -> tuple[str, int]:
    return finding.file, finding.document or 0


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    yield from map(str, findings[:SHOWN])
    if len(findings) > SHOWN:
        yield str(Finding(findings[0].file, None, findings[0].document, Problem("", "and more problems like these")))
