"""Runs the jobs of a part one after another."""

import subprocess

from comparison.environment import PeersMissing
from validation.commands import Failed, OutOfTime

ERRORS = (Failed, KeyError, OSError, RuntimeError, ValueError, ZeroDivisionError, subprocess.SubprocessError)


def run_jobs(session, part, title, jobs, note_passed=False):
    """Runs the (name, function) pairs that --only selects. A job that fails or runs out of time is recorded under `title`, and the next
    one still runs. `part`: the option of validate-gpu that runs them. `note_passed`: also record jobs that return as passed checks."""
    record = session.record
    for name, job in jobs:
        if not session.wants(name):
            continue
        with record.job(part, name):
            try:
                job()
            except (OutOfTime, PeersMissing) as reason:
                record.leave_out(title, name, reason)
            except ERRORS as reason:
                record.check(title, name, False, str(reason) if isinstance(reason, (Failed, RuntimeError)) else f"{type(reason).__name__}: {reason}")
            else:
                if note_passed:
                    record.checks.append({"part": title, "name": name, "passed": True, "detail": ""})
