"""Part 1: what mylos doctor says of the machine, and cuDNN's description of the GPU, with which graphs are planned without one."""

import json

from validation.commands import run, succeed
from validation.jobs import run_jobs

PART = "device"
LIMIT = 60


def doctor(session, clock):
    done = run([session.bundle.program("gpu"), "doctor", "--output", session.scratch], clock.limit(LIMIT), session.names)
    session.record.check(PART, "doctor finds no error", done.code == 0, "" if done.code == 0 else done.reason())


def describe(session, clock):
    """Records the description as a figure: it replaces the one in tests/core/kernels/cudnn_devices/ that was written by hand."""
    program, file = session.bundle.program("gpu", "cudnn_plans"), session.scratch / "cudnn-device.json"
    if not program.is_file() or not session.library_attentions("bfloat16"):
        return session.record.leave_out(PART, "cuDNN's description", "cudnn_plans is not in the bundle, or cuDNN 9 is not found")
    succeed([program, "--describe", file], clock.limit(LIMIT), session.names)
    return session.record.figure("cudnn device", description=json.loads(file.read_text(encoding="utf-8")))


def device(session, clock):
    run_jobs(session, "tests", PART, [("device doctor", lambda: doctor(session, clock)), ("device description", lambda: describe(session, clock))])
