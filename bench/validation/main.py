"""Runs the parts of scripts/validate-gpu that the command line selects."""

import argparse
import datetime
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from comparison import models, questions
from validation import report, target
from validation.agreement import agreement
from validation.beside import beside
from validation.bundle import Refused, open_bundle
from validation.commands import Clock, OutOfTime, end_all
from validation.device import device
from validation.families import families
from validation.ranks import ranks
from validation.record import Record, say
from validation.sanitizer import sanitize
from validation.sizes import DRY, Sizes, TINY
from validation.tests import unit_tests
from validation.timing import timing

# part -> its share of the time if all parts run, the most needed first.
PARTS = {"tests": 0.31, "ranks": 0.19, "sanitize": 0.14, "time": 0.20, "compare": 0.16}


def is_within(name, whole):
    """Returns whether a job belongs to another: "test_core Gemm" to "test_core", and "peak, float" to "peak"."""
    return name == whole or name.startswith((f"{whole} ", f"{whole},"))


class Stopped(BaseException):
    """A signal asked this process to end. What was found so far is reported."""


SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stop(number, _):
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    end_all()
    raise Stopped(f"stopped by {signal.Signals(number).name}")


class Session:
    """The options, files and programs that all parts share."""

    def __init__(self, options, bundle, scratch):
        self.dry_run, self.bundle, self.scratch = options.dry_run, bundle, scratch
        self.sizes = DRY if options.dry_run else Sizes().of_batches(options.batch)
        self.threads = options.threads
        self.test_jobs = max(1, min(6, options.threads // 2))
        self.test_threads = max(1, options.threads // self.test_jobs)
        self.root, self.only, self.unused = ROOT, options.only, set(options.only)
        self.record = Record(options.repeat)
        self.gpu = None  # its name in nvidia-smi
        self.gpus = 0 if options.dry_run else target.gpu_count()
        self._models = {}
        self.cuda = [] if options.dry_run else target.gpu_folders(bundle.manifest["cuda"].split(".")[0])
        self.names = self.names_of("gpu")

    def wants(self, name):
        """Returns whether --only selects the job `name`, or one within it."""
        self.unused -= {only for only in self.only if is_within(name, only)}
        return not self.only or any(is_within(name, only) or is_within(only, name) for only in self.only)

    def names_of(self, build):
        """Returns the environment of a build's programs. Their cache of timings is separate for this run."""
        names = target.environment(self.bundle, ROOT, self.cuda if build == "gpu" else ())
        return names | {"OMP_NUM_THREADS": str(self.threads), "XDG_CACHE_HOME": str(self.scratch / "cache"),
                        "MYLOS_PROGRAM": str(self.bundle.program(build))}

    def attentions(self, precision):
        """Returns the attention kernels of the build for a precision, the fastest first."""
        types = ("bfloat16", "half") if self.bundle.manifest["architecture"] >= 80 else ("half",)
        return ["tensor-cores", "portable"] if precision in types and not self.bundle.stand_in else ["portable"]

    def library_attentions(self, precision):
        """Returns the attention kernels by libraries that this machine has. They have no dropout."""
        is_built = precision != "float" and not self.bundle.stand_in and self.bundle.manifest.get("cudnn", False)
        return ["cudnn"] if is_built and target.folder_of("libcudnn.so.9")[0] else []

    def convolutions(self):
        """Returns the providers of convolutions that this machine has."""
        if self.bundle.stand_in:
            return ["auto"]
        return (["cudnn"] if target.folder_of("libcudnn.so.9")[0] else []) + ["cublaslt"]

    def prepare(self):
        """Writes the questions that the parts share."""
        rows = list(questions.flat_rows(self.bundle.questions))
        random.Random(11).shuffle(rows)
        self.questions = questions.write_rows(self.scratch / "questions.json", rows[: self.sizes.questions])
        self.small_questions = questions.write_rows(self.scratch / "small-questions.json", rows[: self.sizes.small_questions])

    def model(self, name):
        """Returns a model with random weights. Creates it at the first call."""
        if name not in self._models:
            self._models[name] = models.make_random_bert(self.scratch / name, self.bundle.vocabulary, self.sizes.shapes[name])
        return self._models[name]


def arguments():
    parser = argparse.ArgumentParser(prog="validate-gpu", description="Validates and times a build for GPUs; writes a JSON file and a page of tables.")
    parser.add_argument("--tests", action="store_true", help="unit tests on the GPU, and GPU against CPU; without a part's flag all parts are run")
    parser.add_argument("--ranks", action="store_true", help="NCCL on one GPU, and ranks that share it")
    parser.add_argument("--sanitize", action="store_true", help="CUDA_LAUNCH_BLOCKING, and compute-sanitizer over tests of kernels")
    parser.add_argument("--time", action="store_true", help="matrix products, kernels, training steps")
    parser.add_argument("--compare", action="store_true", help="PyTorch beside us on the same batches")
    parser.add_argument("--dry-run", action="store_true", help="all of it on this CPU, with the bundle's build for the CPU and small sizes")
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "build/gpu-bundle", metavar="DIR", help="what scripts/bundle-gpu made (default: %(default)s)")
    parser.add_argument("--output", type=pathlib.Path, metavar="DIR",
                        help="where the results go (default: bench/results; of a dry run build/validation)")
    parser.add_argument("--seconds", type=int, default=530, metavar="N", help="in all (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=Sizes.batch, metavar="N", help="sequences of a step (default: %(default)s); not of a dry run")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of the host (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only this job and those within it, by the beginning of its name, as in a line that fails; may be repeated")
    options = parser.parse_args()
    if options.seconds < 1 or options.threads < 1 or not 1 <= options.batch <= 128:
        parser.error("--seconds and --threads: expected at least 1; --batch: 1 to 128")
    options.parts = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    options.repeat = repeater(options, parser)
    options.output = options.output or ROOT / ("build/validation" if options.dry_run else "bench/results")
    return options


def repeater(options, parser):
    """Returns a function that returns the command which repeats a job of a part, with the options of this command."""
    words = ["--dry-run"] if options.dry_run else []
    for name in ("bundle", "output", "seconds", "batch", "threads"):
        if getattr(options, name) != parser.get_default(name):
            words += [f"--{name}", str(getattr(options, name))]
    return lambda part, job: shlex.join(["scripts/validate-gpu", f"--{part}", *(["--only", job] if job else []), *words])


def check_target(session, options):
    """Checks that the machine can be used. Errors: Refused, with the reason."""
    found = {}
    if not options.dry_run:
        found["gpu"] = target.gpu()
        target.check_architecture(found["gpu"], session.bundle.manifest["architecture"])
        if target.capability_of(found["gpu"]) < 80:
            session.sizes = session.sizes.without("bfloat16")
        probe = models.make_random_bert(session.scratch / "probe", session.bundle.vocabulary, TINY)
        reason = target.check_program(session.bundle.program("gpu"), probe, session.names)
        session.record.check("target", "the program computes", reason is None, reason or "")
        session.gpu = found["gpu"]["uuid"]
    return {**found, **target.describe(session.bundle.program("gpu"), session.names)}


def run_part(part, session, clock):
    if part == "tests":
        device(session, clock)
        agreement(session, Clock(0.3 * clock.left()))
        families(session, Clock(0.25 * clock.left()))
        unit_tests(session, clock)
    else:
        {"ranks": ranks, "sanitize": sanitize, "time": timing, "compare": beside}[part](session, clock)


def run_parts(session, options, whole):
    """Runs each part in its share of the time. Unused time goes to the next part. A part that fails does not stop the others."""
    for number, part in enumerate(options.parts):
        later = sum(PARTS[name] for name in options.parts[number:])
        clock = Clock(whole.left() * PARTS[part] / later)
        say(f"{part}: {clock.left():.0f} s at most")
        begin = time.monotonic()
        with session.record.job(part, None):
            try:
                run_part(part, session, clock)
            except OutOfTime as reason:
                session.record.leave_out(part, "the rest of the part", reason)
            except Exception as error:  # an error of this script: recorded like any other
                session.record.check(part, "the part itself", False, f"{type(error).__name__}: {error}")
        session.record.figure("parts", part=part, seconds=round(time.monotonic() - begin, 1))


def name_of(found, commit, when):
    words = f"gpu {found['gpu']['name']}" if "gpu" in found else "dry run"
    return f"{re.sub(r'[^a-z0-9]+', '-', words.lower()).strip('-')}-{when:%Y%m%d-%H%M%S}-{commit or 'unknown'}"


def validate(options, scratch):
    """Runs the validation and returns the exit code."""
    begin, when = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    whole = Clock(options.seconds)
    session = Session(options, open_bundle(options.bundle, scratch, options.dry_run), scratch)
    found = check_target(session, options)
    record = session.record
    try:
        session.prepare()
        run_parts(session, options, whole)
    except Stopped as reason:
        record.check("options", "the whole validation", False, f"{reason} after {time.monotonic() - begin:.0f} s")
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the report is written
    for name in sorted(session.unused):
        record.check("options", f"--only {name}", False, f"{' and '.join(options.parts)} {'have' if len(options.parts) > 1 else 'has'} no such job")
    result = {"date": f"{when:%Y-%m-%d %H:%M} UTC", "dry_run": options.dry_run, "parts": options.parts, "target": found,
              "manifest": session.bundle.manifest, "versions": record.versions, "seconds": time.monotonic() - begin,
              "checks": record.checks, "left_out": record.left_out, "figures": record.figures}
    for path in report.write(result, options.output, name_of(found, session.bundle.manifest.get("commit"), when)):
        print(path)
    failed = record.failed()
    say(f"{len(record.checks) - len(failed)} checks passed, {len(failed)} failed, {len(record.left_out)} left out, {result['seconds']:.0f} s")
    return 1 if failed else 0


def main():
    options = arguments()
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of nvidia-smi
    for number in SIGNALS:
        signal.signal(number, stop)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="mylos-validate-"))
    try:
        sys.exit(validate(options, scratch))
    except (Refused, Stopped) as reason:
        print(f"validate-gpu: {reason}", file=sys.stderr)
        sys.exit(1)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
