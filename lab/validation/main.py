"""Runs the parts of lab/validate-gpu that the command line selects."""

import argparse
import dataclasses
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
sys.path.insert(0, str(ROOT / "lab"))

from comparison import models, pictures, questions
from validation import report, target
from validation.agreement import agreement
from validation.beside import beside
from validation.bundle import Refused, open_bundle
from validation.commands import Clock, OutOfTime, end_all
from validation.doctor import doctor
from validation.ranks import ranks
from validation.record import Record, say
from validation.sanitizer import sanitize
from validation.sizes import DRY, Sizes, TINY
from validation.tests import unit_tests
from validation.timing import timing


@dataclasses.dataclass(frozen=True)
class Part:
    seconds: int  # at most, if all parts run; others in proportion. Unused time goes to the next part.
    run: object  # a function of session and clock
    help: str


# In the order in which they are run, the most needed first.
PARTS = {
    "doctor": Part(90, doctor, "mylos doctor, and cuDNN's description of the GPU"),
    "agreement": Part(90, agreement, "GPU against CPU: losses of each model family, and checkpoints of each resumed on the other"),
    "tests": Part(90, unit_tests, "unit tests on the GPU"),
    "sanitize": Part(120, sanitize, "compute-sanitizer over tests of kernels, and CUDA_LAUNCH_BLOCKING"),
    "ranks": Part(150, ranks, "ranks that share one GPU, over NCCL as if on nodes of their own, and over MPI"),
    "time": Part(150, timing, "kernels, training steps, matrix products"),
    "compare": Part(90, beside, "PyTorch beside us on the same batches"),
}
TABLES = 120  # seconds that remain for starting and for the tables
TOTAL = sum(part.seconds for part in PARTS.values()) + TABLES


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
        self.subjects = {}  # of agreement.py, by name
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
        """Returns the GEMM providers that compute convolutions on this machine."""
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
            folder, sizes = self.scratch / name, self.sizes
            if name in sizes.llamas:
                made = models.make_random_llama(folder, ROOT / "examples/chess/model", sizes.llamas[name], sizes.llama_tokens)
            elif name in sizes.resnets:
                made = models.make_random_resnet(folder, sizes.resnets[name], pictures.LABELS)
            else:
                made = models.make_random_bert(folder, self.bundle.vocabulary, sizes.shapes[name])
            self._models[name] = made
        return self._models[name]


def arguments():
    parser = argparse.ArgumentParser(prog="validate-gpu", description="Validates and times a build for GPUs; writes a JSON file and a page of tables.")
    group = parser.add_argument_group("parts, in the order in which they are run; without a flag all of them")
    for name, part in PARTS.items():
        group.add_argument(f"--{name}", action="store_true", help=f"{part.help} ({part.seconds} s at most if all are run)")
    parser.add_argument("--dry-run", action="store_true", help="all of it on this CPU, with the bundle's build for the CPU and small sizes")
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "build/gpu-bundle", metavar="DIR", help="what lab/bundle-gpu made (default: %(default)s)")
    parser.add_argument("--output", type=pathlib.Path, metavar="DIR",
                        help="where the results go (default: lab/results; of a dry run build/validation)")
    parser.add_argument("--seconds", type=int, default=TOTAL, metavar="N",
                        help=f"in all, {TABLES} of {TOTAL} of them for starting and for the tables (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=Sizes.batch, metavar="N", help="sequences of a step (default: %(default)s); not of a dry run")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of the host (default: %(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only this job and those within it, by the beginning of its name, as in a line that fails; may be repeated")
    options = parser.parse_args()
    if options.seconds < 1 or options.threads < 1 or not 1 <= options.batch <= 128:
        parser.error("--seconds and --threads: expected at least 1; --batch: 1 to 128")
    options.parts = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    options.repeat = repeater(options, parser)
    options.output = options.output or ROOT / ("build/validation" if options.dry_run else "lab/results")
    return options


def repeater(options, parser):
    """Returns a function that returns the command which repeats a job of a part, with the options of this command."""
    words = ["--dry-run"] if options.dry_run else []
    for name in ("bundle", "output", "seconds", "batch", "threads"):
        if getattr(options, name) != parser.get_default(name):
            words += [f"--{name}", str(getattr(options, name))]
    return lambda part, job: shlex.join(["lab/validate-gpu", f"--{part}", *(["--only", job] if job else []), *words])


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


def run_parts(session, options, whole, write):
    """Runs each part in its share of the time, and writes the report after each. A part that fails does not stop the others."""
    for number, part in enumerate(options.parts):
        later = sum(PARTS[name].seconds for name in options.parts[number:])
        clock = Clock(whole.left() * PARTS[part].seconds / later)
        say(f"{part}: {clock.left():.0f} s at most")
        begin = time.monotonic()
        with session.record.job(part, None):
            try:
                PARTS[part].run(session, clock)
            except OutOfTime as reason:
                session.record.leave_out(part, "the rest of the part", reason)
            except Exception as error:  # an error of this script: recorded like any other
                session.record.check(part, "the part itself", False, f"{type(error).__name__}: {error}")
        session.record.figure("parts", part=part, seconds=round(time.monotonic() - begin, 1))
        write()


def name_of(found, commit, when):
    words = f"gpu {found['gpu']['name']}" if "gpu" in found else "dry run"
    return f"{re.sub(r'[^a-z0-9]+', '-', words.lower()).strip('-')}-{when:%Y%m%d-%H%M%S}-{commit or 'unknown'}"


def validate(options, scratch):
    """Runs the validation and returns the exit code."""
    begin, when = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    whole = Clock(options.seconds * (1 - TABLES / TOTAL))
    session = Session(options, open_bundle(options.bundle, scratch, options.dry_run), scratch)
    found = check_target(session, options)
    record = session.record

    def write():
        result = {"date": f"{when:%Y-%m-%d %H:%M} UTC", "dry_run": options.dry_run, "parts": options.parts, "target": found,
                  "manifest": session.bundle.manifest, "versions": record.versions, "seconds": time.monotonic() - begin,
                  "checks": record.checks, "left_out": record.left_out, "figures": record.figures}
        return report.write(result, options.output, name_of(found, session.bundle.manifest.get("commit"), when))

    try:
        session.prepare()
        run_parts(session, options, whole, write)
    except Stopped as reason:
        record.check("options", "the whole validation", False, f"{reason} after {time.monotonic() - begin:.0f} s")
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the report is written
    for name in sorted(session.unused):
        record.check("options", f"--only {name}", False, f"{' and '.join(options.parts)} {'have' if len(options.parts) > 1 else 'has'} no such job")
    for path in write():
        print(path)
    failed = record.failed()
    say(f"{len(record.checks) - len(failed)} checks passed, {len(failed)} failed, {len(record.left_out)} left out, {time.monotonic() - begin:.0f} s")
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
