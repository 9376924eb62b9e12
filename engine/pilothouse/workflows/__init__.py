"""Workflows: the graph, its expressions, the pure brain, the step kinds and the local runner."""
