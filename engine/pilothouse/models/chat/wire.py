"""The format's one object."""

from pilothouse.models.chat.chunks import ChunkReader
from pilothouse.models.chat.request import encode
from pilothouse.models.wire import Wire, bearer

CHAT = Wire("openai-completions", "/chat/completions", bearer, encode, ChunkReader)
