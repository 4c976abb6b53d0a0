"""Part 1: runs the test programs, with a process for each suite, so that a suite that breaks the GPU's context affects no other.
Programs that start the program under test many times get a process for each test, so that these run in parallel."""

import concurrent.futures
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


def path_of(session, program):
    return session.bundle.program("cpu" if program == "test_app" else "gpu", program)


class Suite:
    def __init__(self, session, program, name, tests):
        self.session, self.program, self.name, self.tests = session, program, name, tests

    def run(self, clock):
        """Runs the suite. Returns {test: (state, message)}. If the suite ends early, runs it again test by test."""
        single = len(self.tests) == 1
        outcome = {} if single else self.run_filtered(f"{self.name}.*", clock.limit(SUITE_LIMIT))
        if outcome.keys() >= set(self.tests):
            return outcome
        for test in self.tests:
            try:
                found = self.run_filtered(f"{self.name}.{test}", clock.limit(SUITE_LIMIT if single else TEST_LIMIT))
            except OutOfTime:
                outcome.setdefault(test, ("left out", "no time was left"))
            else:
                outcome[test] = found.get(test) or ("left out" if self.late else "failed", self.reason)
        return outcome

    def run_filtered(self, pattern, limit):
        report = self.session.scratch / f"report-{id(self)}.json"
        report.unlink(missing_ok=True)
        command = [path_of(self.session, self.program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"]
        done = run(command, limit, self.session.names | {"OMP_NUM_THREADS": str(self.session.test_threads)}, self.session.scratch)
        self.reason, self.late = done.reason(), done.timed_out and limit.of_part
        return outcomes(report)


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


def chosen_suites(session, clock):
    """Yields the suites of all programs of the bundle, in the order of PROGRAMS."""
    for program, pattern in session.test_programs:
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
                    yield Suite(session, program, name, group)


def run_suite(suite, clock):
    try:
        return suite.run(clock)
    except OutOfTime as reason:
        return {test: ("left out", str(reason)) for test in suite.tests}


def unit_tests(session, clock):
    """Runs all suites. Records a check for each suite and a figure for each program."""
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(session.test_jobs) as pool:
        suites = list(chosen_suites(session, clock))
        for suite, outcome in zip(suites, pool.map(lambda one: run_suite(one, clock), suites)):
            record_suite(session, suite, outcome, totals.setdefault(suite.program, {}))
    for program, counts in totals.items():
        session.record.figure("tests", program=program, **{state: counts.get(state, 0) for state in ("passed", "failed", "skipped", "left out")})


def record_suite(session, suite, outcome, counts):
    for state, _ in outcome.values():
        counts[state] = counts.get(state, 0) + 1
    failures = {test: message for test, (state, message) in outcome.items() if state == "failed"}
    late = [test for test, (state, _) in outcome.items() if state == "left out"]
    name = f"{suite.program} {suite.name}" + (f".{suite.tests[0]}" if suite.program in TEST_BY_TEST else "")
    if failures:
        first = next(iter(failures))
        session.record.check(PART, name, False, f"{len(failures)} of {len(outcome)} fail; {first}: {failures[first].splitlines()[0][:300]}",
                             failures={test: message[:2000] for test, message in failures.items()})
    elif len(late) < len(outcome):
        session.record.checks.append({"part": PART, "name": name, "passed": True, "detail": f"{len(outcome) - len(late)} tests"})
    if late:
        session.record.leave_out(PART, name, f"{len(late)} tests: no time was left")
    if not failures and not late:
        say(f"passed: {name}, {len(outcome)} tests")
