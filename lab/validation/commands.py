"""Runs commands with a time limit each, and one for the part that they belong to."""

import os
import re
import signal
import subprocess
import threading
import time

# Lines of the backtrace with which Kokkos ends a program.
BACKTRACE = r"Backtrace:|\s*(\S*\s)?\[0x[0-9a-f]+\]"


class OutOfTime(Exception):
    """The time of the part is used up; its remaining commands are left out."""


class Failed(Exception):
    """A command failed; the message is one line with the reason."""


class Limit(float):
    """Seconds. `of_part` says whether the time of the part, rather than the limit of the command, sets them."""

    of_part = False


class Clock:
    """The remaining time of a part."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def limit(self, seconds):
        """Returns `seconds`, or the remaining time if that is less. Errors: OutOfTime."""
        left = self.left()
        if left < 1:
            raise OutOfTime("no time was left")
        limit = Limit(min(seconds, left))
        limit.of_part = left < seconds
        return limit


class Done:
    def __init__(self, code, output, errors, seconds, timed_out):
        self.code, self.output, self.errors, self.seconds, self.timed_out = code, output, errors, seconds, timed_out

    def reason(self):
        """Returns the reason of a failure: the last line of output that is not part of a backtrace, or how the command ended."""
        if self.timed_out:
            return f"not done after {self.seconds:.0f} s"
        said = [line for line in (self.errors or self.output).splitlines() if line.strip() and not re.match(BACKTRACE, line)]
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{said[-1].strip()} ({how})" if said else how


RUNNING = set()  # leaders of the process groups of running commands
STOPPED = threading.Event()  # no more commands are started


def end_all():
    """Ends all commands. Later ones are not started."""
    STOPPED.set()
    for leader in list(RUNNING):
        end_group(leader)


def run(command, limit, environment=None, directory=None):
    """Runs a command for at most `limit` seconds, and then ends it with all processes that it started."""
    begin = time.monotonic()
    if STOPPED.is_set():
        return Done(1, "", "the validation was stopped", 0.0, False)
    try:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", env=environment, cwd=directory,
                                   start_new_session=True)
    except OSError as error:
        return Done(127, "", f"{command[0]}: {error.strerror}", 0.0, False)
    timed_out = False
    RUNNING.add(process.pid)
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        end_group(process.pid)
        output, errors = process.communicate()
    except BaseException:
        end_group(process.pid)
        raise
    finally:
        RUNNING.discard(process.pid)
    return Done(process.returncode, output, errors, time.monotonic() - begin, timed_out)


def end_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def succeed(command, limit, environment=None, directory=None):
    """Runs a command and returns it with its output. Errors: Failed; OutOfTime if the time of the part ended it."""
    done = run(command, limit, environment, directory)
    if done.timed_out and getattr(limit, "of_part", False):
        raise OutOfTime(f"the part's time was spent after {done.seconds:.0f} s of it")
    if done.code != 0 or done.timed_out:
        name = " ".join(str(word) for word in command[:3] if not str(word).startswith("/")) or str(command[0])
        raise Failed(f"{name}: {done.reason()}")
    return done
