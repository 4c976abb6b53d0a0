"""Tests bench_scale: its rows, the bytes, rounds and memory that it counts, and its table.

test_scale.py BENCH_SCALE
"""

import json
import math
import os
import subprocess
import sys
import unittest

MIB, UNITS = 1 << 20, 8
NODE_SIZES = (1, 4, 8, 128)
RANKS = (1, 2, 8, 64)
LONG = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}  # how often a rank sends the parts of the others
SHORT = ("all-reduce", "broadcast", "gather")
# The same for a step of one micro-batch: gradients are summed, and values gathered. In `sharded`, all units are gathered in the forward pass,
# and all but the last two again in the backward pass.
MODES = {"replicated": 2, "sharded-optimizer": 2, "sharded-gradients": 2, "sharded": 1 + (2 * UNITS - 2) / UNITS}


def run(*words):
    names = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    return subprocess.run([sys.argv[1], *words], capture_output=True, text=True, env=names)


def others(count):
    """The share of an array that is not a member's own."""
    return (count - 1) / count


class Scale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = run("--ranks", ",".join(map(str, RANKS)), "--mib", "1", "--json")
        assert done.returncode == 0, done.stderr
        cls.rows = {(row["name"], row["bytes"], row["ranks"], row["ranks_of_node"]): row for row in json.loads(done.stdout)}

    def row(self, name, size, ranks, ranks_of_node):
        return self.rows[name, size, ranks, ranks_of_node]

    def test_every_operation_and_mode_has_a_row_for_each_layout(self):
        layouts = [(ranks, size) for ranks in RANKS for size in NODE_SIZES if size <= ranks]
        expected = {(name, MIB, *layout) for name in LONG for layout in layouts}
        expected |= {(name, 64 << 10, *layout) for name in SHORT for layout in layouts}
        expected |= {(name, UNITS * MIB, *layout) for name in MODES for layout in layouts}
        expected |= {("hybrid", UNITS * MIB, ranks, size) for ranks, size in layouts if 1 < size < ranks}
        self.assertEqual(set(self.rows), expected)

    def test_bytes_are_those_of_the_other_parts(self):
        for size, factors in ((MIB, LONG), (UNITS * MIB, MODES)):
            for name, factor in factors.items():
                for ranks in RANKS:
                    row = self.row(name, size, ranks, 1)
                    self.assertAlmostEqual(row["sent"] / size, factor * others(ranks), 3, row)
                    self.assertEqual((row["node_sent"], row["node_received"]), (row["sent"], row["sent"]))
                    if ranks == 64:
                        row = self.row(name, size, ranks, 8)
                        self.assertAlmostEqual(row["node_sent"] / size, factor * others(8), 3, row)

    def test_hybrid_sends_only_the_sums_of_gradients_between_nodes(self):
        size = UNITS * MIB
        row = self.row("hybrid", size, 64, 8)
        self.assertAlmostEqual(row["node_sent"] / size, 2 * others(8), 3)
        self.assertAlmostEqual(row["sent"] / size, MODES["sharded"] * others(8) + 2 / 8 * others(8), 3)

    def test_rounds_of_short_arrays_and_memory_are_bounded(self):
        for name in SHORT:
            for ranks in RANKS:
                row = self.row(name, 64 << 10, ranks, 1)
                self.assertLessEqual(row["rounds"], 2 * math.log2(ranks), row)
        for row in self.rows.values():
            self.assertLessEqual(row["memory"], 16 * MIB, row)

    def test_the_table_has_a_row_for_each_operation_and_mode(self):
        done = run("--ranks", "16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2 + len(LONG) + len(SHORT) + len(MODES) + 1)

    def test_what_is_wrong_is_one_line(self):
        for words, said in ((("--ranks", "0"), "--ranks 0: expected a whole number"), (("--brief",), "--brief: expected --json or --ranks VALUE")):
            done = run(*words)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertTrue(done.stderr.startswith("bench_scale: error: " + said), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
