"""Starts ranks: of test programs, and of training whose losses have to be those of one rank."""

import dataclasses
import re
import shutil

from validation.agreement import BOUNDS, Agreement, difference, losses
from validation.commands import Failed, run

MODES = {"replicated": (), "sharded-optimizer": (), "sharded-gradients": (), "sharded": (), "hybrid": ("--shard-size", "2")}


@dataclasses.dataclass
class Launch:
    ranks: int = 2
    wrapper: tuple = ()  # words before those of each rank's program
    more: dict = dataclasses.field(default_factory=dict)  # environment variables
    limit: float = 150  # seconds of a test program

    def words(self, session):
        """Returns the words that start the ranks. Errors: Failed."""
        program = session.bundle.launcher or shutil.which("mpirun")
        if program is None:
            raise Failed("there is no mpirun: it is not in the bundle and not on the path")
        return [program, "-n", str(self.ranks), *self.wrapper]

    def names(self, session):
        """Returns the environment of ranks that share the CPUs of this machine."""
        return session.names | {"OMP_NUM_THREADS": str(max(1, session.threads // self.ranks))} | self.more


def first_failure(output):
    """Returns the line of a test program's output that says most about a failure, or None."""
    for pattern in (r"^rank \d+: .*", r"^mylos: error: .*", r"^.*\.cpp:\d+: Failure$", r"^\[  FAILED  \] .*", r"^.*\berror\b.*"):
        found = re.search(pattern, output, re.MULTILINE)
        if found:
            return found[0].strip()
    return None


def test_ranks(session, clock, part, program, pattern, launch):
    """Runs the tests of a program that match `pattern` on several ranks, as one check."""
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        return session.record.leave_out(part, program, "it is not in the bundle")
    limit = clock.limit(launch.limit)
    done = run([*launch.words(session), path, "--gtest_color=no", f"--gtest_filter={pattern}"], limit, launch.names(session), session.scratch)
    passed = re.search(r"^\[  PASSED  \] (\d+) tests?", done.output, re.MULTILINE)
    if done.timed_out and limit.of_part:
        return session.record.leave_out(part, program, f"no time was left after {done.seconds:.0f} s of it")
    fine = done.code == 0 and passed is not None and int(passed[1]) > 0
    reason = done.reason() if done.timed_out else first_failure(done.output + "\n" + done.errors) or done.reason()
    return session.record.check(part, f"{program} on {launch.ranks} ranks", fine, f"{passed[1]} tests" if fine else reason)


def train_mode(runner, communicator, mode, launch):
    """Trains in a mode, if that was not done before. Returns the output directory."""
    name = f"ranks-{launch.ranks}-{communicator}-{mode}"
    if runner.output(name).exists():
        return runner.output(name)
    return runner.train("gpu", "float", name, "--communicator", communicator, "--mode", mode, *MODES[mode], launcher=launch.words(runner.session),
                        names=launch.names(runner.session))


def train_ranks(session, clock, part, communicator, mode, launch):
    """Compares the losses of several ranks with those of one rank, in float."""
    runner = Agreement(session, clock)
    one = runner.output("ranks-1")
    if not one.exists():
        runner.train("gpu", "float", "ranks-1")
    more = train_mode(runner, communicator, mode, launch)
    found, bound = difference(losses(more), losses(one)), BOUNDS["float"]
    what = f"losses of {launch.ranks} ranks over {communicator} and of one, {mode}"
    session.record.check(part, what, found <= bound, f"{len(losses(more))} steps differ by {found:.1e} at most, bound {bound:.0e}")
    session.record.figure("ranks", what=what, steps=len(losses(more)), difference=found, bound=bound)
