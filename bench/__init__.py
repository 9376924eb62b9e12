"""Benchmarks: what the engine costs, beside peers and limits that are measured in the same run."""
