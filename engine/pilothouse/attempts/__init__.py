"""Agent attempts: what the local runner and an agent's Pod do alike, and the process of that Pod's `agent` container.

`pod` is the container's entry point: `python -I -m pilothouse.attempts.pod`.
"""
