"""The tools of MCP servers. Importing this costs nothing: the protocol's library is loaded by the first connection."""
