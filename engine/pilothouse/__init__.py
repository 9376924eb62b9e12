"""Pilothouse: durable, governed AI agents and workflows. This package knows nothing of Kubernetes."""

__version__ = "0.1.0"
