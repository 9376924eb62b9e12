"""The agent's harness: a session that is kept, with hooks, phases and queues around the loop."""

from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.harness.harness import AgentHarness, Cleared
from pilothouse.agents.harness.hooks import HarnessHooks
from pilothouse.agents.harness.moving import Destination
from pilothouse.agents.harness.queues import MemoryQueues, QueueName, Queues, StoredQueues

__all__ = [
    "AgentHarness",
    "Cleared",
    "Destination",
    "HarnessConfig",
    "HarnessHooks",
    "MemoryQueues",
    "QueueName",
    "Queues",
    "StoredQueues",
]
