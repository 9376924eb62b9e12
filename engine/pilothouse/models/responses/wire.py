"""The format's one object."""

from pilothouse.models.responses.events import EventReader
from pilothouse.models.responses.request import encode
from pilothouse.models.wire import Wire, bearer

RESPONSES = Wire("openai-responses", "/responses", bearer, encode, EventReader)
