"""Calls of the store API from the position of an agent's Pod: what they answer. Run inside its container."""

import json
from typing import Any

from e2e.isolation.scene import AtWork

# Reads calls from the first argument, `[[path, token, body], …]`; prints `[[status, body], …]`. The token `own` is the
# Pod's, and `pass` what the store API gives for it.
_CALLS = """
import json, os, ssl, sys, urllib.error, urllib.request

URL = os.environ["PILOTHOUSE_STORE_URL"] + "/store/v1/"
context = ssl.create_default_context(cadata=os.environ["PILOTHOUSE_STORE_CA_PEM"])

def call(path, token, body):
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")

own = open("/var/run/pilothouse/store/token").read().strip()
held = {"own": own}
if any(token == "pass" for _, token, _ in json.loads(sys.argv[1])):
    held["pass"] = call("token", own, {})[1]["token"]
print(json.dumps([call(path, held.get(token, token), body) for path, token, body in json.loads(sys.argv[1])]))
"""

Answer = tuple[int, Any]


def call(from_: AtWork, path: str, token: str, body: Any = None) -> Answer:
    """Status and body of one answer. `token` is one, or `own` for the Pod's, or `pass` for what that is given."""
    [(status, answer)] = from_.python(_CALLS, json.dumps([[path, token, body or {}]]))
    return status, answer


def pass_of(from_: AtWork) -> tuple[str, dict[str, Any]]:
    """The token of the Pod's attempt, and which attempt that is."""
    status, answer = call(from_, "token", "own")
    assert status == 200
    return answer["token"], answer["attempt"]
