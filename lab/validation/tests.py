"""Runs the test programs, with a process for each suite, so that a suite that breaks the GPU's context affects no other.
Programs that start the program under test many times get a process for each test, so that these run in parallel."""

import concurrent.futures
import dataclasses
import json
import re

from validation.commands import OutOfTime, run
from validation.record import say

PART = "tests"
# Program, and its suites that compute, which are run. Kernels come first, whole runs last. test_app starts the program under test
# (MYLOS_PROGRAM), and is itself from the build for the CPU.
PROGRAMS = [
    ("test_core", r".*"),
    ("test_device_rank_sum", r".*"),
    ("test_nn", r".*"),
    ("test_families", r"(?!.*(Fetch|Directory|Config|Shapes|Tensors|Files)).*"),  # those that compute
    ("test_resnet", r".*"),
    ("test_communicator", r".*"),
    ("test_modes", r".*"),
    ("test_checkpoint", r".*"),
    ("test_train", r"(?!Nvml$|GpuMonitorTest$).*"),  # without the suites that replace NVML by a library of their own
    ("test_tasks", r".*"),
    ("test_checkpoint_ranks", r".*"),
    ("test_many_ranks", r".*"),
    ("test_resume_ranks", r".*"),
    ("test_app", r"Bench|BenchStep|Runs|ResumedRuns"),
]
TEST_BY_TEST = {"test_app"}
# Suites in files with these words come first: kernels that were rewritten and have not run on a GPU since, those of few tests before attention.
FOLDERS = {"test_core": "tests/core/kernels", "test_nn": "tests/nn", "test_families": "tests/families",
           "test_resnet": "tests/families/resnet"}
FIRST = ["batch_norm", "layer_norm", "team", "attention", "chunks", "convolution", "rms_norm", "optimizer", "cross_entropy", "rotary", "resnet"]
STATES = ("passed", "failed", "skipped", "left out")
SUITE_LIMIT = 90
TEST_LIMIT = 45


def suites_of(listing):
    """Parses the output of --gtest_list_tests. Returns {suite: [test]}."""
    suites, suite = {}, None
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.strip():
            continue
        if not line.startswith(" "):
            suite = name if name.endswith(".") else None  # otherwise it is other output of the program
        elif suite is not None:
            suites.setdefault(suite[:-1], []).append(name.strip())
    return suites


def suites_in(folder):
    """Returns {suite: file} of the tests defined below a folder of the source tree."""
    found = {}
    for file in sorted(folder.rglob("test_*.cpp")):
        for suite in re.findall(r"^(?:TYPED_|MYLOS_)?TEST(?:_F|_P|_OF_\w+)?\((\w+),", file.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(suite, file.stem)
    return found


def rank_of(files, name):
    """Returns the place of the suite `name` in FIRST, by the file that defines it. `files`: see suites_in."""
    file = next((files[part] for part in name.split("/") if part in files), "")
    return next((number for number, word in enumerate(FIRST) if word in file), len(FIRST))


def path_of(session, program):
    return session.bundle.program("cpu" if program == "test_app" else "gpu", program)


@dataclasses.dataclass
class Around:
    """How suites are run: a tool that starts the program, more environment variables, and seconds for a suite."""

    name: str = ""  # before the program's name in the report
    command: list = dataclasses.field(default_factory=list)
    names: dict = dataclasses.field(default_factory=dict)
    limit: float = SUITE_LIMIT
    error: object = lambda done: None  # returns what the tool found wrong, or None


class Suite:
    def __init__(self, session, program, name, tests, around):
        self.session, self.program, self.name, self.tests, self.around = session, program, name, tests, around
        self.title = " ".join(filter(None, (around.name, program, name))) + (f".{tests[0]}" if program in TEST_BY_TEST else "")

    def run(self, clock):
        """Runs the suite. Returns {test: (state, message)}. If the suite ends early, runs it again test by test."""
        single = len(self.tests) == 1
        outcome = {} if single else self.run_filtered(f"{self.name}.*", clock.limit(self.around.limit))
        if outcome.keys() >= set(self.tests):
            return outcome
        for test in self.tests:
            try:
                found = self.run_filtered(f"{self.name}.{test}", clock.limit(self.around.limit if single else TEST_LIMIT))
            except OutOfTime:
                outcome.setdefault(test, ("left out", "no time was left"))
            else:
                outcome[test] = found.get(test) or ("left out" if self.late else "failed", self.reason)
        return outcome

    def run_filtered(self, pattern, limit):
        report = self.session.scratch / f"report-{id(self)}.json"
        report.unlink(missing_ok=True)
        command = [*self.around.command, path_of(self.session, self.program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"]
        names = self.session.names | {"OMP_NUM_THREADS": str(self.session.test_threads)} | self.around.names
        done = run(command, limit, names, self.session.scratch)
        self.reason, self.late = done.reason(), done.timed_out and limit.of_part
        found, error = outcomes(report), self.around.error(done)
        if error is None and done.code != 0 and found and all(state != "failed" for state, _ in found.values()):
            error = f"it does not end well: {done.reason()}"
        return found if error is None else {test: ("failed", error) for test in found or [pattern.rpartition(".")[2]]}


def outcomes(report):
    """Returns {test: (state, message)} of a GoogleTest report. The state is passed, failed or skipped."""
    try:
        suites = json.loads(report.read_text(encoding="utf-8", errors="replace"))["testsuites"]
    except (OSError, json.JSONDecodeError, KeyError):
        return {}
    found = {}
    for suite in suites:
        for test in suite["testsuite"]:
            if test.get("failures"):
                found[test["name"]] = ("failed", test["failures"][0]["failure"].strip())
            elif test.get("result") == "SKIPPED":
                found[test["name"]] = ("skipped", "")
            elif test.get("result") == "COMPLETED":
                found[test["name"]] = ("passed", "")
    return found


def chosen_suites(session, clock, programs):
    """Yields (program, suite, tests) of the programs that are in the bundle. `programs`: (program, pattern of its suites)."""
    for program, pattern in programs:
        if not path_of(session, program).is_file():
            session.record.leave_out(PART, program, "it is not in the bundle")
            continue
        done = run([path_of(session, program), "--gtest_list_tests"], clock.limit(60), session.names)
        suites = suites_of(done.output)
        if done.code != 0 or not suites:
            session.record.check(PART, program, False, f"its tests cannot be listed: {done.reason()}")
        for name, tests in suites.items():
            if any(re.fullmatch(pattern, part) for part in name.split("/")):  # Shapes/Attention, Store/0
                for group in [[test] for test in tests] if program in TEST_BY_TEST else [tests]:
                    yield program, name, group


def run_suite(suite, clock):
    try:
        return suite.run(clock)
    except OutOfTime as reason:
        return {test: ("left out", str(reason)) for test in suite.tests}


def run_suites(session, clock, part, suites, around=Around(), counts=None):
    """Runs the suites that --only selects, several at once. Records a check for each. Returns `counts`, to which the number of tests of each
    state is added."""
    chosen = [suite for suite in (Suite(session, *each, around) for each in suites) if session.wants(suite.title)]
    counts = {} if counts is None else counts
    with concurrent.futures.ThreadPoolExecutor(session.test_jobs) as pool:
        for suite, outcome in zip(chosen, pool.map(lambda one: run_suite(one, clock), chosen)):
            with session.record.job(None, suite.title):
                record_suite(session, part, suite, outcome, counts)
    return counts


def unit_tests(session, clock):
    """Runs all suites, those of FIRST before the others of any program. Records a figure for each program."""
    counts = {}
    try:
        for first in (True, False):
            for program, pattern in PROGRAMS:
                if session.wants(program) and (program in FOLDERS or not first):
                    with session.record.job(None, program):
                        run_suites(session, clock, PART, suites_by_need(session, clock, program, pattern, first), counts=counts.setdefault(program, {}))
    finally:
        for program, states in counts.items():
            if states:
                session.record.figure("tests", program=program, **{state: states.get(state, 0) for state in STATES})


def suites_by_need(session, clock, program, pattern, first):
    """Returns the suites of FIRST in its order, or the others."""
    files = suites_in(session.root / FOLDERS[program]) if program in FOLDERS else {}
    ranked = [(rank_of(files, suite[1]), suite) for suite in chosen_suites(session, clock, [(program, pattern)])]
    return [suite for rank, suite in sorted(ranked, key=lambda each: each[0]) if (rank < len(FIRST)) == first]


def record_suite(session, part, suite, outcome, counts):
    for state, _ in outcome.values():
        counts[state] = counts.get(state, 0) + 1
    failures = {test: message for test, (state, message) in outcome.items() if state == "failed"}
    late = [test for test, (state, _) in outcome.items() if state == "left out"]
    name = suite.title
    if failures:
        first = next(iter(failures))
        session.record.check(part, name, False, f"{len(failures)} of {len(outcome)} fail; {first}: {failures[first].splitlines()[0][:300]}",
                             failures={test: message[:2000] for test, message in failures.items()})
    elif len(late) < len(outcome) and any(state == "passed" for state, _ in outcome.values()):
        session.record.checks.append({"part": part, "name": name, "passed": True, "detail": f"{len(outcome) - len(late)} tests"})
    if late:
        session.record.leave_out(part, name, f"{len(late)} tests: no time was left")
    if not failures and not late:
        say(f"passed: {name}, {len(outcome)} tests")
