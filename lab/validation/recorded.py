"""Records the losses of the CPU in an unpacked bundle: python3 -m validation.recorded DIR"""

import json
import os
import pathlib
import sys
import tempfile
import types

from validation.agreement import record_cpu_losses
from validation.bundle import LOSSES, Bundle
from validation.commands import Clock
from validation.main import Session
from validation.sizes import Sizes

LIMIT = 3600


def record_losses(root, sizes):
    with tempfile.TemporaryDirectory(prefix="mylos-losses-") as scratch:
        options = types.SimpleNamespace(dry_run=True, threads=len(os.sched_getaffinity(0)), only=[], repeat=None)
        session = Session(options, Bundle({}, root, True), pathlib.Path(scratch))
        session.sizes = sizes
        session.prepare()
        (root / "data" / LOSSES).write_text(json.dumps(record_cpu_losses(session, Clock(LIMIT)), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record_losses(pathlib.Path(sys.argv[1]), Sizes())
