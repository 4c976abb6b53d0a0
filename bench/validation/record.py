"""Collects the results of a validation: checks, figures, and parts that were left out with the reason."""

import sys
import threading


def say(text):
    print(text, file=sys.stderr, flush=True)


class Record:
    def __init__(self):
        self.checks = []
        self.figures = []
        self.left_out = []
        self._lock = threading.Lock()

    def check(self, part, name, passed, detail="", **more):
        with self._lock:
            self.checks.append({"part": part, "name": name, "passed": bool(passed), "detail": detail, **more})
        say(f"{'passed' if passed else 'FAILED'}: {part}: {name}{': ' + detail if detail else ''}")

    def figure(self, table, **row):
        """Adds a row to a table of the report."""
        with self._lock:
            self.figures.append({"table": table, **row})

    def leave_out(self, part, name, why):
        with self._lock:
            self.left_out.append({"part": part, "name": name, "why": str(why)})
        say(f"left out: {part}: {name}: {why}")

    def failed(self):
        return [check for check in self.checks if not check["passed"]]

    def rows(self, table):
        return [row for row in self.figures if row["table"] == table]
