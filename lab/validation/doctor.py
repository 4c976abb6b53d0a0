"""What the program says about the machine, and cuDNN's description of the GPU, for which cudnn_plans plans graphs on machines without one."""

import json

from validation.commands import Failed, run, succeed
from validation.jobs import run_jobs

PART = "doctor"
LIMIT = 60


def findings(session, clock):
    """Records what mylos doctor finds. An error is a failed check."""
    done = run([session.bundle.program("gpu"), "doctor", "--output", session.scratch, "--json"], clock.limit(LIMIT), session.names)
    try:
        found = json.loads(done.output)["findings"]
    except (json.JSONDecodeError, KeyError) as error:
        raise Failed(done.reason()) from error
    for finding in found:
        session.record.figure("doctor", **{key: finding[key] for key in ("level", "name", "text", "advice")})
    errors = [f"{finding['name']}: {finding['text']}" for finding in found if finding["level"] == "error"]
    session.record.check(PART, "mylos doctor", not errors, "; ".join(errors) or f"{len(found)} findings without an error")


def describe_device(session, clock):
    path = session.bundle.program("gpu", "cudnn_plans")
    if not path.is_file():
        return session.record.leave_out(PART, "cuDNN's description of the GPU", "cudnn_plans is not in the bundle")
    file = session.scratch / "cudnn-device"
    succeed([path, "--describe", file], clock.limit(LIMIT), session.names)
    return session.record.figure("cudnn device", description=file.read_text(encoding="utf-8"))


def doctor(session, clock):
    run_jobs(session, "doctor", PART, [("mylos doctor", lambda: findings(session, clock)), ("cudnn_plans", lambda: describe_device(session, clock))])
