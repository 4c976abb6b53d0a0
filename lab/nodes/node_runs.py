"""Times exchanges and training steps on the simulated nodes of lab/test-nodes, which starts this in the namespace of the bridge.

    node_runs.py BUILD MPIEXEC NAME DIRECTORY ROUNDS MBIT...

NAME: the first part of the namespaces' names. DIRECTORY: for files of the runs. Prints tables in Markdown, then the errors. Exits
with 1 if there are any.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from comparison import models, results, scaling
from comparison.mylos import steps_of
from node_network import NODES, OF_NODE, RANKS, LinkCounts, Nodes

SHAPE = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
WORDS, POSITIONS = 1000, 512
LENGTH = 32  # tokens of a sequence: few, so that the network decides how long a step takes
STEPS, WARM_UP = 7, 2
FLOAT = 4
BLOCK = 1024  # elements, of which a slice of a unit is a multiple
CARRIED = 0.03  # by which a link may carry more than was counted: headers, acknowledgements, repeated segments
MEMORY = 5e9  # bytes per second of a rank's memory, by which the plan times the optimizer; assumed
COMPUTE = 0  # lane of a trace
NEAR = 1e-5  # tolerance for losses, because modes sum in different orders


@dataclasses.dataclass(frozen=True)
class Case:
    mode: str
    micro_batches: int
    knows: bool = True  # whether exchanges know which ranks share a node

    def __str__(self):
        return f"{self.mode}{'' if self.knows else ', nodes unknown'}, {self.micro_batches} micro-batch{'es' if self.micro_batches > 1 else ''}"


CASES = (Case("replicated", 1), Case("replicated", 1, False), Case("sharded-optimizer", 1), Case("sharded-optimizer", 1, False),
         Case("sharded", 1), Case("sharded", 1, False), Case("hybrid", 1), Case("sharded", 4), Case("hybrid", 4))
# Exchanges of whole gradients or values: name in the trace, mode, and how often a rank sends the others' parts.
EXCHANGES = (("all-reduce of gradients", "replicated", 2), ("reduce-scatter of gradients", "sharded-optimizer", 1),
             ("all-gather of values", "sharded-optimizer", 1))


def check_counts(build):
    """Errors: SystemExit where bench_scale does not count the bytes that node_sends assumes."""
    command = [str(build / "bench/bench_scale"), "--ranks", f"{RANKS},{4 * NODES}", "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    counts = {(row["name"], row["ranks"], row["ranks_of_node"]): row for row in rows if row["bytes"] == 64 << 20}
    for name, _, passes in EXCHANGES:
        operation = name.partition(" ")[0]
        # What a node sends depends only on the number of nodes. bench_scale counts 4 nodes of 4 ranks.
        for counted, expected in ((counts[operation, 4 * NODES, 4]["node_sent"], passes * (NODES - 1) / NODES),
                                  (counts[operation, RANKS, 1]["sent"], passes * (RANKS - 1) / RANKS)):
            if abs(counted / (64 << 20) - expected) > 0.001:
                sys.exit(f"bench_scale counts {counted / (64 << 20):.4f} array sizes for {operation}, not {expected:.4f}")


def units(slices=0):
    """Bytes of each unit of the model: padded to whole blocks in each of `slices` slices, or without padding."""
    hidden, inner = SHAPE["hidden_size"], SHAPE["intermediate_size"]
    layer = 4 * hidden * (hidden + 1) + hidden * (inner + 1) + inner * (hidden + 1) + 4 * hidden
    sizes = [(WORDS + POSITIONS + 4) * hidden, *[layer] * SHAPE["num_hidden_layers"], 2 * hidden + 2]
    block = slices * BLOCK or 1
    return [-(-size // block) * block * FLOAT for size in sizes]


def node_sends(case):
    """Bytes that a node sends in a step. A node that knows its ranks sends each array (nodes - 1) / nodes times."""
    if case.mode == "hybrid":  # gradients, once a step: whole slices, with their padding
        return 2 * sum(units(OF_NODE)) * (NODES - 1) / NODES
    whole, count = units(), case.micro_batches
    moved = 2 * sum(whole)
    if case.mode == "sharded":
        # The backward pass has the last two units from the forward pass, and the next forward pass has the first two.
        moved = count * (3 * sum(whole) - sum(whole[-2:])) - (count - 1) * sum(whole[:2])
    # Without nodes, both ranks send to all ranks, of which the other one of their node is not reached over its link.
    return moved * ((NODES - 1) / NODES if case.knows else OF_NODE * (RANKS - OF_NODE) / RANKS)


class Findings:
    """Figures of each round, by what they are of and the rate of the links."""

    def __init__(self):
        self.figures, self.wrong, self.losses = {}, [], {}

    def add(self, what, mbit, figure):
        self.figures.setdefault((what, mbit), []).append(figure)

    def median(self, what, mbit):
        return statistics.median(self.figures[what, mbit])

    def ratio(self, what, other, mbit):
        """Median, least and largest ratio of the rounds."""
        ratios = [a / b for a, b in zip(self.figures[what, mbit], self.figures[other, mbit])]
        return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    def check(self, holds, what):
        if not holds:
            self.wrong.append(what)


def lanes(trace):
    """The events of each rank and lane: name and seconds, in the order in which they began."""
    found = {}
    for event in sorted(json.loads(trace.read_text())["traceEvents"], key=lambda event: event.get("ts", 0)):
        if event["ph"] == "X":
            found.setdefault((event["pid"], event["tid"]), []).append((event["name"], 1e-6 * event["dur"]))
    return found


def exchange_seconds(trace, name):
    """Seconds in which exchanges of this name are under way in a step: the median of steps and ranks."""
    count = len(units())
    sums = []
    for events in lanes(trace).values():
        seconds = [duration for each, duration in events if each.startswith(f"exchange {name}")]
        sums += [sum(seconds[begin : begin + count]) for begin in range(WARM_UP * count, len(seconds) - count + 1, count)]
    return statistics.median(sums)


def compute_seconds(trace):
    """Seconds that a rank computes for a micro-batch, forward and backward: the median of ranks."""
    means = []
    for (_, lane), events in lanes(trace).items():
        if lane == COMPUTE:
            passes = sum(name == events[0][0] for name, _ in events) / 2
            means.append(sum(duration for _, duration in events) / passes)
    return statistics.median(means)


def link_rate(trace):
    """Bytes per second that a rank receives in gathers of hybrid, which stay inside a node: the median of ranks."""
    of_unit = dict(zip(["embeddings", *(f"layer.{layer}" for layer in range(SHAPE["num_hidden_layers"])), "head"], units(OF_NODE)))
    rates = []
    for events in lanes(trace).values():
        gathers = [(name.rpartition(" ")[2], duration) for name, duration in events if name.startswith("exchange all-gather of gather ")]
        if gathers:
            rates.append(sum(of_unit[unit] for unit, _ in gathers) * (OF_NODE - 1) / OF_NODE / sum(duration for _, duration in gathers))
    return statistics.median(rates)


def train(nodes, data, mbit, case, found):
    output, trace = nodes.directory / "run", nodes.directory / "trace.json"
    counts = LinkCounts(nodes, output)
    counts.start()
    nodes.run(case.knows, "train", "--model", data / "model", "--train", data / "questions.json", "--output", output, "--batch",
              RANKS * case.micro_batches, "--micro-batch", 1, "--steps", STEPS, "--gemm", "onednn", "--checkpoint-every", "never", "--trace", trace,
              *mode_words(case))
    counts.ended.set()
    counts.join()
    steps = steps_of(output)
    # The time from the end of a step to the end of the next also includes the reports, which the reported seconds leave out.
    found.add(case, mbit, statistics.median(step["time"] - before["time"] for before, step in zip(steps[WARM_UP - 1 :], steps[WARM_UP:])))
    found.add(("reported", case), mbit, statistics.median(step["seconds"] for step in steps[WARM_UP:]))
    found.add("compute", mbit, compute_seconds(trace))
    if case.mode == "hybrid":
        found.add("link", mbit, link_rate(trace))
    for name, mode, _ in EXCHANGES:
        if mode == case.mode:
            found.add((name, case.knows), mbit, exchange_seconds(trace, name))
    check_run(case, mbit, steps, json.loads((output / "run.json").read_text()), found)
    # A step is reported after the exchanges of the next one, so the last report but one has seen all exchanges.
    moved = [(after - before) / (len(counts.counts) - 1 - WARM_UP)
             for first, last in zip(counts.counts[WARM_UP - 1], counts.counts[-2]) for before, after in zip(first, last)]
    found.add(("bytes", case), mbit, statistics.mean(moved))
    expected = node_sends(case)
    found.check(all(1 - CARRIED <= count / expected <= 1 + CARRIED for count in moved),
                f"{case}: links carry {min(moved) / 1e6:.2f} to {max(moved) / 1e6:.2f} MB in a step; {expected / 1e6:.2f} MB were counted")
    shutil.rmtree(output)


def check_run(case, mbit, steps, run, found):
    reference = found.losses.setdefault(case.micro_batches, [step["loss"] for step in steps])
    near = len(steps) == STEPS and all(abs(step["loss"] - loss) <= NEAR for step, loss in zip(steps, reference))
    found.check(near, f"{case} at {mbit} Mbit/s: losses differ from those of the first run")
    expected = NODES if case.knows else RANKS
    found.check(run["resolved"]["nodes"] == expected, f"{case}: {run['resolved']['nodes']} nodes were found, not {expected}")


def mode_words(case):
    return ["--mode", case.mode, *(["--shard-size", OF_NODE] if case.mode == "hybrid" else [])]


def write_data(directory):
    directory.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *scaling.QUESTION.split()]
    (directory / "vocab.txt").write_text("\n".join([*words, *(f"[unused{i}]" for i in range(WORDS - len(words)))]) + "\n")
    models.make_random_bert(directory / "model", directory / "vocab.txt", {**SHAPE, "max_position_embeddings": POSITIONS})
    scaling.write_questions(directory / "questions.json", LENGTH, RANKS * max(case.micro_batches for case in CASES))


def plan(nodes, data, case, mbit, flops, link):
    """The plan of `mylos plan` for ranks that compute `flops` operations and move `link` bytes inside a node per second."""
    rates = data / "rates.json"
    rates.write_text(json.dumps({"calibration": {
        "device": "the simulated nodes", "host": True, "threads": 1, "precision": "float", "parameters": 1, "flops_per_row": 1.0,
        "flops_per_second": flops, "bytes_per_second": MEMORY}}))
    words = ["plan", "--model", data / "model", "--gpu", "cpu", "--gpus", RANKS, "--nodes", NODES, "--threads", 1, "--network-bandwidth", mbit / 8000,
             "--link-bandwidth", f"{1e-9 * link:.4f}",
             "--bench", rates, "--data", data / "questions.json", "--batch", RANKS * case.micro_batches, "--micro-batch", 1, "--steps", STEPS,
             *mode_words(case), "--json"]
    return json.loads(nodes.alone(*words))["modes"][0]


def plans_of(nodes, data, rates, found):
    """The plans of the cases that a plan knows, with the rates at which ranks computed, and exchanged inside a node, in the runs."""
    plans, flops = {}, 1e10
    for mbit in rates:
        link = found.median("link", mbit)
        seconds = plan(nodes, data, Case("sharded", 1), mbit, flops, link)["compute_seconds"]
        measured = flops * seconds / found.median("compute", mbit)
        plans |= {(case, mbit): plan(nodes, data, case, mbit, measured, link) for case in CASES if case.knows}
    return plans


def exchange_table(rates, plans, found):
    head = ["Mbit/s", "exchange", "nodes known, s", "unknown, s", "unknown / known", "counted", "plan, s"]
    rows = []
    for mbit in rates:
        for name, mode, passes in EXCHANGES:
            known, unknown = Case(mode, 1), Case(mode, 1, False)
            # The plan has one figure for all exchanges of a step.
            plan = plans[known, mbit]["exchange_seconds"] * passes / 2
            rows.append([str(mbit), name, *(f"{found.median((name, case.knows), mbit):.2f}" for case in (known, unknown)),
                         found.ratio((name, False), (name, True), mbit), f"{node_sends(unknown) / node_sends(known):.2f}", f"{plan:.2f}"])
    return results.markdown(head, rows)


def step_table(rates, plans, found):
    head = ["Mbit/s", "run", "step, s", "reported", "plan, s", "step / hybrid's", "plan / hybrid's", "node sends, MB", "counted", "plan"]
    rows = []
    for mbit in rates:
        for case in CASES:
            hybrid, planned = Case("hybrid", case.micro_batches), plans.get((case, mbit))
            share = planned and planned["step_seconds"] / plans[hybrid, mbit]["step_seconds"]
            sends = planned and planned["node_sent_bytes"] / 1e6
            rows.append([str(mbit), str(case), f"{found.median(case, mbit):.2f}", f"{found.median(('reported', case), mbit):.2f}",
                         f"{planned['step_seconds']:.2f}" if planned else "", found.ratio(case, hybrid, mbit), f"{share:.2f}" if planned else "",
                         f"{found.median(('bytes', case), mbit) / 1e6:.1f}", f"{node_sends(case) / 1e6:.1f}", f"{sends:.1f}" if sends else ""])
    return results.markdown(head, rows)


def print_report(nodes, rates, plans, streams, found):
    print(f"{NODES} nodes of {OF_NODE} ranks on {os.cpu_count()} processors")
    for mbit in rates:
        print(f"{mbit} Mbit/s: one TCP stream from each node to the next, all at once, {streams[mbit]:.0f} Mbit/s; "
              f"a rank computes {1000 * found.median('compute', mbit):.0f} ms for a micro-batch, and exchanges "
              f"{1e-9 * found.median('link', mbit):.2f} GB/s inside a node")
    sent, again = nodes.segments()
    print(f"{again} of {sent} TCP segments were sent again")
    print("\n" + exchange_table(rates, plans, found) + "\n\n" + step_table(rates, plans, found))
    for line in found.wrong:
        print(f"WRONG: {line}")


def main():
    mpiexec, name = sys.argv[2:4]
    build, directory = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[4])
    rounds, *rates = map(int, sys.argv[5:])
    check_counts(build)
    nodes, found, streams, data = Nodes(build, mpiexec, name, directory), Findings(), {}, directory / "data"
    write_data(data)
    for turn in range(rounds):
        for mbit in rates:
            nodes.set_rate(mbit)
            if turn == 0:
                streams[mbit] = nodes.stream_rate()
            begin = time.monotonic()
            for case in CASES:
                train(nodes, data, mbit, case, found)
            print(f"round {turn + 1} of {rounds} at {mbit} Mbit/s took {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    print_report(nodes, rates, plans_of(nodes, data, rates, found), streams, found)
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main()
