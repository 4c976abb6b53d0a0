"""Lets a peer answer requests: each line of stdin is a JSON object, and so is each line of stdout.

The program that times the peer starts it once, so that models are loaded once. Between requests the peer waits on stdin.
"""

import json
import os
import sys
import traceback


def serve(commands):
    """Answers {"do": NAME, ...} with the result of commands[NAME](...), or with {"error": one line}. Returns when stdin ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keeps output of libraries out of the replies
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = commands[request.pop("do")](**request) or {}
        except Exception as error:  # the comparison leaves out a peer that fails, with this reason
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
