"""Compares two ranks of one thread each with one process of two threads, and with PyTorch's DDP and FSDP2 over gloo.

Every turn is a separate run, started by a launcher; its first step is not counted. Mylos always multiplies with oneDNN, so that all
turns use the same provider.
"""

import contextlib
import dataclasses

from comparison import machine
from comparison.mylos import run, steps_of, training_command
from comparison.peer import PeerGroup
from comparison.training import LOSS_STEPS, LOSS_TOLERANCE, rate, say, say_rates

RANKS = 2
ALONE = f"Mylos, 1 rank x {RANKS} threads"
MODE_TOLERANCE = 1e-5

# mode -> target ratio to the speed of one process
MODES = ("replicated", "sharded-optimizer", "sharded-gradients", "sharded", "hybrid")

STEPS = 3  # per turn, after one that is not counted
STEPS_BESIDE = 2  # per turn if a step of the peer takes half a minute
PADDING = "padded to the longest"


@dataclasses.dataclass
class Wrapping:
    """A wrapper of PyTorch for several processes, and our mode that shards in the same way."""

    name: str
    script: str
    mode: str


DDP = Wrapping("PyTorch DDP", "ddp", "replicated")
FSDP2 = Wrapping("PyTorch FSDP2", "fsdp2", "sharded")


def named(mode):
    return f"Mylos, {RANKS} ranks x 1 thread, {mode}"


def train(session, subject, mode, first, steps, *options):
    """Trains `steps` steps from batch `first` on. Returns their records. If `mode` is None, one process has RANKS threads."""
    output, order = session.scratch("run"), subject.data.write_order(session.scratch("order.jsonl"), first)
    command = training_command(session.program, subject.model, subject.data, output, steps, "--gemm", "onednn", "--overwrite", *options,
                               order=order)
    if mode is None:
        run(command, RANKS)
    else:
        run(["mpirun", "-n", RANKS, *command, "--mode", mode], None)
    return steps_of(output)


def check_losses(session, subject, mode, theirs, tolerance, against):
    """Checks that Mylos in this mode gives these losses from the same weights on the same batches, without dropout."""
    losses = [step["loss"] for step in train(session, subject, mode, 0, LOSS_STEPS, *subject.data.without_dropout)]
    session.results.check(f"{subject.name}: {named(mode)}, against {against}, {LOSS_STEPS} steps", losses, theirs, tolerance)


def in_turns(session, subject, runs, steps):
    """Returns samples of real tokens (or images) per second. `runs`: {name: function(first, count)}; batch `first` is not counted."""
    samples = {name: [] for name in runs}
    for turn in range(session.rounds):
        for name, measure in runs.items():
            samples[name].append(measure(turn * steps, 1 + steps))
        say_rates(f"{subject.name}: round {turn + 1} of {session.rounds}", samples)
    return samples


def ours(session, subject, mode):
    """Returns a function that measures a run, and the lists in which it notes the memory and the sent bytes of a rank."""
    notes = {"resident_mib": [], "sent_mib": []}

    def measure(first, count):
        records = train(session, subject, mode, first, count)[1:]
        notes["resident_mib"].append(max(record["memory"] for record in records) / 2**20)
        notes["sent_mib"].append(max(record.get("sent", 0) for record in records) / 2**20)
        return rate(records, subject.data)

    return measure, notes


def enough_cpus(session, what):
    if machine.usable_cpus() >= RANKS:
        return True
    session.results.leave_out(what, f"{machine.usable_cpus()} CPU is usable, {RANKS} are wanted")
    return False


def modes(session, subject, names):
    """Compares Mylos with two ranks in each of the modes with Mylos in one process."""
    what = f"{subject.name} training, batch {subject.data.size}, {RANKS} ranks x 1 thread"
    if not enough_cpus(session, what):
        return
    say(f"{subject.name}: checking losses")
    expected = [step["loss"] for step in train(session, subject, None, 0, LOSS_STEPS, *subject.data.without_dropout)]
    for mode in names:
        check_losses(session, subject, mode, expected, MODE_TOLERANCE, ALONE)
    measured = {ALONE: ours(session, subject, None), **{named(mode): ours(session, subject, mode) for mode in names}}
    samples = in_turns(session, subject, {name: measure for name, (measure, _) in measured.items()}, STEPS)
    for name, values in samples.items():
        session.results.cell(what, name, subject.data.unit, values, **measured[name][1])
    for mode in names:
        session.results.ratio(f"{what}, {mode}", f"1 rank x {RANKS} threads", samples[named(mode)], samples[ALONE])


@contextlib.contextmanager
def loaded(session, subject, wrapping, tuned, dropout=None):
    """Starts the peer's processes and loads the model. `tuned`: use the environment of comparison/peer.py."""
    with PeerGroup(session.python, "distributed_training.py", RANKS, session.scratch("peer.log"), tuned) as group:
        group.ask("load", wrapping=wrapping.script, model=str(subject.model), threads=1, learning_rate=subject.data.learning_rate,
                  dropout=dropout, **subject.data.of_peer())
        yield group


def losses_of(replies):
    """Returns the loss of each batch, which is the mean over the processes."""
    return [sum(shares) / len(shares) for shares in zip(*(reply["losses"] for reply in replies))]


def peer_rate(subject, group):
    def measure(first, count):
        replies = group.ask("steps", batches=subject.data.batches(first, count), padding="longest")
        return sum(replies[0]["counts"][1:]) / max(sum(reply["seconds"][1:]) for reply in replies)

    return measure


def beside(session, subject, wrapping, tuned=False):
    """Compares Mylos with the peer that shards in the same way."""
    mode = wrapping.mode
    what = f"{subject.name} training, batch {subject.data.size}, {RANKS} ranks x 1 thread, {mode}"
    if not enough_cpus(session, what):
        return
    say(f"{subject.name}: checking losses")
    with loaded(session, subject, wrapping, tuned, dropout=0.0) as group:
        losses = losses_of(group.ask("steps", batches=subject.data.batches(0, LOSS_STEPS), padding="longest"))
    check_losses(session, subject, mode, losses, LOSS_TOLERANCE, wrapping.name)
    theirs = f"{wrapping.name}, {PADDING}{', tuned' if tuned else ''}"
    with loaded(session, subject, wrapping, tuned) as group:
        samples = in_turns(session, subject, {named(mode): ours(session, subject, mode)[0], theirs: peer_rate(subject, group)}, STEPS_BESIDE)
    for name, values in samples.items():
        session.results.cell(what, name, subject.data.unit, values)
    session.results.ratio(what, theirs, samples[named(mode)], samples[theirs])
