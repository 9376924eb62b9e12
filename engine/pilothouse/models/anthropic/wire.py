"""The format's one object."""

from pilothouse.models.anthropic.events import EventReader
from pilothouse.models.anthropic.request import encode, headers
from pilothouse.models.wire import Wire

MESSAGES = Wire("anthropic-messages", "/v1/messages", headers, encode, EventReader)
