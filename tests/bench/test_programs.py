"""bench_kernels and bench_attention: every kernel passes their checks in every precision, and what they print is what was asked for.

test_programs.py BENCH_KERNELS BENCH_ATTENTION
"""

import json
import os
import subprocess
import sys
import unittest

KERNELS = ["layer-norm", "layer-norm-gradient", "gelu", "gelu-gradient", "bias-gradient", "embedding", "embedding-gradient", "span-loss",
           "vocabulary-loss", "update"]
LAUNCHES = {"layer-norm-gradient": 2, "bias-gradient": 2, "update": 3}


def run(program, *words):
    names = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=100, env=names)


class Kernels(unittest.TestCase):
    def rows(self, *words):
        done = run(sys.argv[1], "--repeats", "1", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_all_are_checked_and_timed_in_every_precision(self):
        found = self.rows("--sizes", "1,3", "--columns", "40", "--precision", "float,bfloat16,half")
        self.assertEqual([copy["bytes"] for copy in found["copies"]], [1e6, 3e6])
        self.assertEqual(len(found["kernels"]), 2 * 3 * len(KERNELS))
        self.assertEqual([row["kernel"] for row in found["kernels"]][: 2 * len(KERNELS) : 2], KERNELS)
        for row in found["kernels"]:
            self.assertGreater(row["bytes"], 5e5, row)
            self.assertGreater(row["seconds"], 0, row)
            self.assertEqual(row["launches"], LAUNCHES.get(row["kernel"], 1) - (row["kernel"] == "update" and row["precision"] == "float"), row)
            self.assertAlmostEqual(row["gbytes_per_second"], 1e-9 * row["bytes"] / row["seconds"], msg=row)

    def test_bytes_are_those_of_the_arrays(self):
        row = self.rows("--sizes", "2", "--columns", "64", "--precision", "bfloat16", "--only", "gelu")["kernels"]
        self.assertEqual([(one["kernel"], one["bytes"]) for one in row], [("gelu", 2e6 // (2 * 4 * 64 * 2) * (2 * 4 * 64 * 2))])

    def test_what_is_wrong_is_one_line(self):
        for words, said in ((("--only", "gemm"), "--only gemm: expected one of layer-norm "), (("--sizes", "0"), "--sizes 0: expected a whole number"),
                            (("--precision", "double"), "--precision double: expected float, bfloat16 or half"), (("--json=1",), "--json=1: expected --json or "),
                            (("--sizes",), "--sizes wants a value")):
            done = run(sys.argv[1], *words)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertTrue(done.stderr.startswith("bench_kernels: error: " + said), done.stderr)


class Attention(unittest.TestCase):
    def test_a_shape_of_ones_own(self):
        done = run(sys.argv[2], "--lengths", "5,70,1", "--heads", "2", "--head-size", "32", "--precision", "float,half", "--dropout", "0,0.1", "--repeats",
                   "1", "--kernel", "portable", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["attention"]
        self.assertEqual([(row["kernel"], row["precision"], round(row["dropout"], 3)) for row in rows],
                         [("portable", "float", 0), ("portable", "half", 0), ("portable", "float", 0.1), ("portable", "half", 0.1)])
        squares = 5 * 5 + 70 * 70 + 1
        for row in rows:
            self.assertEqual(row["lengths"], [5, 70, 1])
            for name, products in (("forward", 2), ("backward", 5)):
                self.assertAlmostEqual(row[name]["gflops"] * row[name]["seconds"] * 1e9 / (2 * products * squares * 2 * 32), 1)

    def test_a_kernel_that_cannot_be_had(self):
        done = run(sys.argv[2], "--kernel", "fast")
        self.assertEqual((done.returncode, done.stderr), (2, "bench_attention: error: --kernel fast: expected portable or tensor-cores\n"))
        done = run(sys.argv[2], "--kernel", "tensor-cores", "--precision", "float")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^bench_attention: error: --kernel tensor-cores: .*; leave it out\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
