"""Collects the results of a validation: checks, figures, and parts that were left out with the reason."""

import contextlib
import sys
import threading


def say(text):
    print(text, file=sys.stderr, flush=True)


class Record:
    """`repeat`: a function of part and job that returns the command which repeats the job."""

    def __init__(self, repeat=None):
        self.checks = []
        self.figures = []
        self.left_out = []
        self.versions = None
        self._repeat, self._job = repeat, None
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def job(self, part, name):
        """Within it, failed checks name the command that repeats job `name` of `part`, an option of validate-gpu. No part: that of the job
        around it; no name: all jobs of the part."""
        before = self._job
        self._job = (part or before[0], name)
        try:
            yield
        finally:
            self._job = before

    def check(self, part, name, passed, detail="", **more):
        found = {"part": part, "name": name, "passed": bool(passed), "detail": detail, **more}
        if not passed and self._repeat is not None and self._job is not None:
            found["repeat"] = self._repeat(*self._job)
        with self._lock:
            self.checks.append(found)
        again = f"; repeat with: {found['repeat']}" if "repeat" in found else ""
        say(f"{'passed' if passed else 'FAILED'}: {part}: {name}{': ' + detail if detail else ''}{again}")

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
