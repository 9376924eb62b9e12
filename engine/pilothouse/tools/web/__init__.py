"""What a tool needs to speak HTTP behind the domain gate, and the built-in `web_fetch`."""
