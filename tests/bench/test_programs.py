"""Tests the benchmark programs: every kernel passes their checks in every precision, and the output matches the options.

test_programs.py BENCH_KERNELS BENCH_ATTENTION BENCH_CONVOLUTION BENCH_GENERATE BENCH_IMAGES
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

KERNELS = ["layer-norm", "layer-norm-gradient", "batch-norm", "batch-norm-gradient", "gelu", "gelu-backward", "bias-gradient", "embedding",
           "embedding-gradient", "span-loss", "vocabulary-loss", "large-vocabulary-loss", "update"]
LAUNCHES = {"layer-norm-gradient": 2, "batch-norm": 3, "batch-norm-gradient": 3, "gelu-backward": 2, "bias-gradient": 2, "update": 2}


def run(program, *words):
    names = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
    return subprocess.run([program, *words], capture_output=True, text=True, env=names)


class Kernels(unittest.TestCase):
    def rows(self, *words):
        done = run(sys.argv[1], "--repeats", "1", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_checks_and_times_every_kernel_in_every_precision(self):
        found = self.rows("--sizes", "1,3", "--columns", "40", "--precision", "float,bfloat16,half")
        self.assertEqual([copy["bytes"] for copy in found["copies"]], [1e6, 3e6])
        self.assertEqual(len(found["kernels"]), 2 * 3 * len(KERNELS))
        self.assertEqual([row["kernel"] for row in found["kernels"]][: 2 * len(KERNELS) : 2], KERNELS)
        for row in found["kernels"]:
            self.assertGreater(row["bytes"], 5e5, row)
            self.assertGreater(row["seconds"], 0, row)
            self.assertEqual(row["launches"], LAUNCHES.get(row["kernel"], 1), row)
            self.assertAlmostEqual(row["gbytes_per_second"], 1e-9 * row["bytes"] / row["seconds"], msg=row)

    def test_bytes_match_the_arrays(self):
        row = self.rows("--sizes", "2", "--columns", "64", "--precision", "bfloat16", "--only", "gelu")["kernels"]
        self.assertEqual([(one["kernel"], one["bytes"]) for one in row], [("gelu", 2e6 // (2 * 4 * 64 * 2) * (2 * 4 * 64 * 2))])


class Attention(unittest.TestCase):
    def test_custom_shape(self):
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

    def test_a_causal_mask_halves_the_pairs_and_a_window_bounds_them(self):
        for window, pairs in (((), 5 * 6 / 2 + 600 * 601 / 2), (("--window", "7"), 5 * 6 / 2 + 7 * 8 / 2 + 593 * 7)):
            done = run(sys.argv[2], "--lengths", "5,600", "--heads", "4", "--key-value-heads", "2", "--head-size", "16", "--mask", "causal",
                       *window, "--precision", "float,bfloat16", "--dropout", "0", "--repeats", "1", "--kernel", "portable", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            for row in json.loads(done.stdout)["attention"]:
                self.assertEqual((row["mask"], row["key_value_heads"]), ("causal", 2))
                self.assertAlmostEqual(row["forward"]["gflops"] * row["forward"]["seconds"] * 1e9 / (2 * 2 * pairs * 4 * 16), 1)


class Convolution(unittest.TestCase):
    def test_all_passes_of_a_network(self):
        done = run(sys.argv[3], "--model", "resnet18-cifar", "--images", "1", "--repeats", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        rows = found["convolutions"]
        self.assertEqual(sum(row["count"] for row in rows), 3 * 20 - 1)
        self.assertEqual(rows[0]["convolution"], "stem/forward")
        self.assertAlmostEqual(1e9 * rows[0]["gflop"], 2 * 32 * 32 * 64 * 27, 0)
        self.assertAlmostEqual(sum(row["count"] * row["gflop"] for row in rows), 3 * 1.111, delta=0.02)
        rates = found["passes"][0]["images_per_second"]
        self.assertEqual(rates["fastest of each"], max(rates.values()))
        for row in rows:
            self.assertEqual(row["gflops"][row["fastest"]], max(row["gflops"].values()), row)


class Generate(unittest.TestCase):
    def test_every_precision_and_batch_size(self):
        done = run(sys.argv[4], "--hidden", "64", "--layers", "2", "--heads", "4", "--key-value-heads", "2", "--feed-forward", "128", "--vocabulary",
                   "500", "--rows", "1,3", "--precision", "float,bfloat16,half", "--prompt", "8", "--tokens", "2", "--rounds", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["generation"]
        self.assertEqual([(row["precision"], row["rows"]) for row in rows],
                         [(precision, count) for precision in ("float", "bfloat16", "half") for count in (1, 3)])
        layer = 64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 128 + 2 * 64
        elements = 2 * layer + 64 + 500 * 64  # all weights except the embeddings
        for row in rows:
            self.assertEqual(row["weights_bytes"], elements * (4 if row["precision"] == "float" else 2))
            self.assertAlmostEqual(row["tokens_per_second"] * row["seconds"], row["rows"])
            self.assertEqual(len(row["shares"]), 2)
            self.assertGreater(min(row["shares"]), 0)


class Images(unittest.TestCase):
    def test_times_passes_over_all_images(self):
        done = run(sys.argv[5], "--data", "synthetic:35x20x30", "--size", "16", "--rounds", "2", "--passes", "3", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["images"], len(found["seconds"])), (3 * 35, 2))
        self.assertGreater(min(found["seconds"]), 0)

    def test_writes_the_pixels_of_an_evaluation(self):
        with tempfile.TemporaryDirectory() as directory:
            pixels = pathlib.Path(directory) / "pixels"
            done = run(sys.argv[5], "--data", "synthetic:5x20x30", "--size", "16", "--write", str(pixels))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual(pixels.stat().st_size, 5 * 16 * 16 * 3)
            self.assertGreater(len(set(pixels.read_bytes())), 100)


class Errors(unittest.TestCase):
    # Program -> (options, beginning of the message after the program's name).
    CASES = {
        1: (("--only gemm", "--only gemm: expected one of layer-norm "), ("--sizes 0", "--sizes 0: expected a whole number"),
            ("--precision double", "--precision double: expected float, bfloat16 or half"), ("--json=1", "--json=1: expected --json or "),
            ("--sizes", "--sizes wants a value")),
        2: (("--mask half", "--mask half: expected full or causal"), ("--window 5", "--window: needs --mask causal"),
            ("--heads 4 --key-value-heads 3", "--key-value-heads 3: expected a divisor of --heads 4"),
            ("--kernel fast", "--kernel fast: expected portable or tensor-cores or cudnn"),
            ("--kernel tensor-cores --precision float", "--kernel tensor-cores: .*; leave it out$")),
        3: (("--model resnet51", "--model resnet51: expected resnet50 or resnet18-cifar"),),
        4: (("--heads 5", ".*5 heads are not a multiple of 4 key/value heads"), ("--rows 0", "--rows 0: expected a whole number"),
            ("--hiden 4", "--hiden: expected --json or ")),
        5: (("--data /nowhere", ".*/nowhere"),),
    }

    def test_are_one_line(self):
        for program, cases in self.CASES.items():
            for words, message in cases:
                done = run(sys.argv[program], *words.split())
                self.assertEqual((done.returncode != 0, len(done.stderr.splitlines())), (True, 1), done.stderr)
                self.assertRegex(done.stderr, f"^{pathlib.Path(sys.argv[program]).name}: error: {message}")
                if message.startswith("--"):
                    self.assertEqual(done.returncode, 2, "an error of the command line")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
