"""The agent: messages, session tree and the tool loop."""
