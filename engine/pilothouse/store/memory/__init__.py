"""The store in this process's memory: for tests, and for runs that need not survive."""

from pilothouse.store.memory.runs import MemoryRunStore

__all__ = ["MemoryRunStore"]
