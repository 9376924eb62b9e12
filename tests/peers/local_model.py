"""Asks the provider Local for the model named as argument, twice, and prints each event as a line of JSON. Runs in the
environment of the peers, with the engine on its path: a model and the binding that loads it are installed there."""

import asyncio
import json
import sys
from typing import Any

from pilothouse.agents.messages import UserMessage, to_wire
from pilothouse.models.factory import create
from pilothouse.models.provider import Done, Failed, ModelEvent, ModelOptions, ModelRequest


def shown(event: ModelEvent) -> dict[str, Any]:
    if isinstance(event, Done | Failed):
        return {"type": event.type, "message": to_wire(event.message)}
    return {"type": event.type}


async def main(model: str) -> None:
    question = UserMessage.of("What is the capital of France?", timestamp=1)
    request = ModelRequest("Be brief.", [question], options=ModelOptions(temperature=0, max_output_tokens=12))
    for _ in range(2):
        async for event in create("Local", model=model).stream(request):
            print(json.dumps(shown(event)), flush=True)  # noqa: T201


asyncio.run(main(sys.argv[1]))
