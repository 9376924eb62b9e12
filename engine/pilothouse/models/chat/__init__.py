"""OpenAI's chat completions, and the dialects of the servers that are compatible with them."""
