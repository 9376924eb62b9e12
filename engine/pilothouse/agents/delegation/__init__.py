"""Agents as tools of other agents, within one attempt."""
