"""A peer as a process that waits on stdin between its turns: one JSON object a line comes in, one goes out.

The program that times it starts it once, so models are loaded once, and lets it run only while nothing else does.
"""

import json
import os
import sys
import traceback


def serve(commands):
    """Answers {"do": NAME, ...} with what commands[NAME](...) returns, or {"error": one line}; ends with stdin."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be taken for a reply
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = commands[request.pop("do")](**request) or {}
        except Exception as error:  # a peer that fails is left out with its reason
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
