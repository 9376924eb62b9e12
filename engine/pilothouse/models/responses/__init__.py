"""OpenAI's Responses, used without any state on the server."""
