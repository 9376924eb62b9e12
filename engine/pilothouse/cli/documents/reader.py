"""From bytes to documents."""

import json
import re
from collections.abc import Iterator

from pilothouse.cli.documents.document import Document, Refused
from pilothouse.cli.documents.json_text import json_documents

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_documents(data: bytes, name: str = "") -> Iterator[Document]:
    """The documents in order. Raises Refused at the first that cannot be read, after those before it.

    The text is UTF-8. It is JSON where it starts like JSON and is valid, or where its `name` says so. Refused, each
    with its place: control characters, duplicate keys, keys that are no text, tags, merge keys, NaN and infinities,
    more than 100,000 values or 100 levels once aliases are put in.
    """
    text = _decode(data)
    if not text.strip():
        raise Refused("is empty: it holds no document")
    if text.lstrip()[0] in "{[":
        try:
            yield from json_documents(text)
            return
        except json.JSONDecodeError as error:
            if name.endswith(".json"):
                raise Refused(f"is not valid JSON: {error.msg} (column {error.colno})", error.lineno) from None
    # Imported here because most commands never read a manifest.
    from pilothouse.cli.documents.yaml_text import yaml_documents

    yield from yaml_documents(text)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec leaves out a byte order mark before it counts.
        at = error.start + len(data) - len(error.object)
        raise Refused(f"is not UTF-8: byte 0x{data[at]:02x} at offset {at}") from None
    if control := _CONTROL.search(text):
        at = control.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise Refused(f"holds the control character U+{ord(control.group()):04X} (column {column})", line)
    return text
