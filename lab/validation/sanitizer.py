"""CUDA's own checks: compute-sanitizer over the tests that launch kernels, and training with CUDA_LAUNCH_BLOCKING=1."""

import re
import shutil

from validation.agreement import Agreement, losses
from validation.commands import Clock, OutOfTime, run
from validation.jobs import run_jobs
from validation.tests import FIRST, FOLDERS, Around, chosen_suites, rank_of, run_suites, suites_in

PART = "checks of CUDA"
PROGRAMS = ["test_core", "test_nn", "test_families"]
MOST_NEEDED = 4  # words of FIRST whose suites run under each tool before any others
# memcheck: accesses beyond arrays, also in shared memory. racecheck: accesses of shared memory without a barrier between them.
TOOLS = {"memcheck": ["--tool", "memcheck"], "racecheck": ["--tool", "racecheck"]}
FOUND = 99  # exit code if compute-sanitizer has found an error
LIMIT = 120


def sanitizer():
    """Returns the path of compute-sanitizer, or None."""
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer")


def device_suites(session, clock, program, ranks=range(len(FIRST) + 1)):
    """Returns the suites of a program whose tests launch kernels and whose places in FIRST are in `ranks`, the most needed first."""
    files = suites_in(session.root / FOLDERS[program])
    known = {suite: file for suite, file in files.items() if not re.search(r"Errors$|Obstacle$|Choice$|Label$|Sizes$|Shape$|Rate$", suite)}
    found = []
    for _, name, tests in chosen_suites(session, clock, [(program, r".*")]):
        if any(part in known for part in name.split("/")) and rank_of(known, name) in ranks:
            found.append((rank_of(known, name), program, name, tests))
    return [tuple(each[1:]) for each in sorted(found, key=lambda each: each[0])]


def sanitizer_reason(done):
    """Returns the first error that compute-sanitizer reports, or None if it found none."""
    if done.code != FOUND:
        return None
    found = re.search(r"^========= *((?:Error|Invalid|Program hit|Warning|Race|Barrier|Misaligned|Address).*)", done.output + "\n" + done.errors, re.MULTILINE)
    return found[1].strip() if found else f"it found an error (exit code {FOUND})"


def sanitizer_obstacle(session, clock):
    """Returns why compute-sanitizer does not work here, or None: some machines do not let it reach the GPU."""
    path, program = sanitizer(), session.bundle.program("gpu", "test_core")
    if path is None:
        return "it is not on the path"
    if not program.is_file():
        return "test_core is not in the bundle"
    try:
        limit = clock.limit(LIMIT)
    except OutOfTime as reason:
        return str(reason)
    done = run([path, *TOOLS["memcheck"], program, "--gtest_filter=Math.*"], limit, session.names, session.scratch)
    return None if done.code == 0 else f"it does not work here: {done.reason()}"


def run_sanitizer(session, clock, tool, program, ranks):
    command = [sanitizer(), *TOOLS[tool], "--error-exitcode", str(FOUND), "--print-limit", "5"]
    run_suites(session, clock, PART, device_suites(session, clock, program, ranks), Around(tool, command, {}, LIMIT, sanitizer_reason))


BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}


def train_blocking(session, clock, precision):
    """Checks that losses are bit for bit the same if the host waits for each launch: no result depends on when a launch ends."""
    runner = Agreement(session, clock)
    usual = losses(runner.train("gpu", precision, f"usual-{precision}"))
    blocking = losses(runner.train("gpu", precision, f"blocking-{precision}", names=session.names | BLOCKING))
    same = bool(usual) and usual == blocking
    differing = next((step + 1 for step, pair in enumerate(zip(usual, blocking)) if pair[0] != pair[1]), None)
    session.record.check(PART, f"losses with CUDA_LAUNCH_BLOCKING, {precision}", same,
                         f"{len(usual)} steps have the same bits" if same else f"step {differing} is the first that differs" if differing
                         else f"{len(usual)} steps and {len(blocking)}")


def test_blocking(session, clock, program):
    run_suites(session, clock, PART, device_suites(session, clock, program), Around("blocking", [], BLOCKING, LIMIT))


def jobs_of(session, clock):
    """Yields (name, job), the most needed first."""
    sanitized = [(tool, program) for program in PROGRAMS for tool in TOOLS if session.wants(f"{tool} {program}")]
    broken = sanitizer_obstacle(session, clock) if sanitized else None
    if broken:
        session.record.leave_out(PART, "compute-sanitizer", broken)
        sanitized = []
    needed, others = range(MOST_NEEDED), range(MOST_NEEDED, len(FIRST) + 1)
    for number, tool in enumerate(TOOLS if sanitized else ()):  # each has an equal share of the time
        yield f"{tool} test_core", lambda tool=tool, share=len(TOOLS) - number: run_sanitizer(
            session, Clock(clock.left() / share), tool, "test_core", needed)
    for precision in session.sizes.precisions:
        yield f"blocking {precision}", lambda precision=precision: train_blocking(session, clock, precision)
    for tool, program in sanitized:
        yield f"{tool} {program}", lambda tool=tool, program=program: run_sanitizer(
            session, clock, tool, program, others if program == "test_core" else range(len(FIRST) + 1))
    for program in PROGRAMS:
        yield f"blocking {program}", lambda program=program: test_blocking(session, clock, program)


def sanitize(session, clock):
    run_jobs(session, "sanitize", PART, jobs_of(session, clock))
