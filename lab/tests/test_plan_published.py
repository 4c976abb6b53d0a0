"""Tests lab/plan_published on published runs and on a small table; an error in a table is reported in one line.

test_plan_published.py MYLOS
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLISHED = pathlib.Path(os.environ.get("MYLOS_DATA", ROOT.parent / "shared/data")).parent / "published/fsdp-throughput.csv"
COLUMNS = ("model,gpu,gpus,micro_batch,accumulation,tokens_per_second_per_gpu,precision,mixed_precision,sharding,activation_checkpointing,"
           "parameters")
SMALL = f"""{COLUMNS}
7b,a100_80gb,8,6,2,4600,amp_bf16,DEFAULT,FULL_SHARD,False,6658859008
7b,a100_80gb,64,6,2,4550,amp_bf16,DEFAULT,FULL_SHARD,False,6658859008
1b,a100_80gb,8,14,4,20000,amp_bf16,DEFAULT,FULL_SHARD,False,1315950592
1b,a100_80gb,16,6,4,19800,amp_bf16,DEFAULT,FULL_SHARD,False,1315950592
30b,a100_40gb,32,4,1,857,bf16,PURE,FULL_SHARD,True,29975214080
"""


def run(file, *words):
    return subprocess.run([ROOT / "lab/plan_published", file, "--program", sys.argv[1], *words], capture_output=True, text=True)


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "table.csv"

    def both(self, file, shortfalls=0):
        output = pathlib.Path(self.folder.name) / "both.json"
        done = run(file, "--output", output)
        self.assertEqual(done.returncode, 1 if shortfalls else 0, done.stdout + done.stderr)
        self.assertEqual(sum("the plan allows a micro-batch of" in line for line in (done.stdout + done.stderr).splitlines()), shortfalls)
        return json.loads(output.read_text())

    def check_bounds(self, tables):
        each = [abs(row["error"]) for row in tables["by_model"] if row["bounded"]]
        of_kind = [abs(row["error"]) for row in tables["by_kind"] if row["bounded"]]
        self.assertLessEqual(max(each), 0.10)
        self.assertLessEqual(max(of_kind), 0.25)
        self.assertLessEqual(statistics.median(of_kind), 0.10)
        for row in tables["by_model"]:
            if row["mixed_precision"] == "DEFAULT":
                self.assertGreaterEqual(row["largest_micro_batch"], row["micro_batch"], row)

    def test_a_small_table(self):
        self.file.write_text(SMALL)
        tables = self.both(self.file)
        self.check_bounds(tables)
        self.assertEqual([row["note"] for row in tables["by_model"]], ["calibrates", "", "calibrates", "micro-batch of 14 calibrates", "calibrates"])
        self.assertEqual([row["note"] for row in tables["by_kind"]], ["calibrates", "", "", "", "no 7b row on 8"])
        for row in tables["by_model"]:
            if row["note"] == "calibrates":
                self.assertAlmostEqual(row["predicted"] / row["published"], 1, 3)

    def test_json_lists_the_rows_of_each_model(self):
        self.file.write_text("\n".join(SMALL.splitlines()[:3]) + "\n")
        done = run(self.file, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual([(row["model"], row["gpu"], row["gpus"], row["precision"], row["published"]) for row in rows],
                         [("7b", "a100_80gb", 8, "amp_bf16", 4600), ("7b", "a100_80gb", 64, "amp_bf16", 4550)])

    def test_reports_a_row_outside_the_bounds(self):
        self.file.write_text(SMALL.replace("4550", "3500"))
        done = run(self.file)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 beyond 10 %", done.stdout)

    def test_errors_are_one_line(self):
        head, first = SMALL.splitlines()[:2]
        for text, said in ((head, "it has no rows"), ("", "it has no column model"), (head.replace("gpus,", "") + "\n", "it has no column gpus"),
                           (f"{head}\n{first.replace('7b', '9b')}", ":2: model is '9b'; expected one of 1b, 3b"),
                           (f"{head}\n{first.replace('a100_80gb', 'mi300')}", ":2: gpu is 'mi300'; expected one of a100_40gb"),
                           (f"{head}\n{first.replace('4600', 'fast')}", ":2: tokens_per_second_per_gpu is 'fast'; expected a number above 0"),
                           (f"{head}\n{first.replace(',8,', ',12,')}", ":2: gpus is 12; expected a multiple of the 8 of a node"),
                           (f"{head}\n{first.replace('4600', '1e9')}", "7b on 8 a100_80gb: no rate explains 1e+09 tokens/s a GPU"), (None, "No such file")):
            if text is None:
                self.file.unlink()
            else:
                self.file.write_text(text)
            done = run(self.file)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_reports_a_micro_batch_that_the_plan_does_not_allow(self):
        self.file.write_text(f"{SMALL}30b,a100_80gb,8,30,1,916,amp_bf16,DEFAULT,FULL_SHARD,True,29975214080\n")
        self.both(self.file, shortfalls=1)

    @unittest.skipUnless(PUBLISHED.is_file(), f"no {PUBLISHED}: published throughput is not here")
    def test_published_runs(self):
        tables = self.both(PUBLISHED)
        self.check_bounds(tables)
        self.assertEqual(sum(row["note"] == "stands out" for row in tables["by_model"]), 1)
        # lab/results/plan.md names the rows whose micro-batch the plan does not allow.
        self.assertEqual([(row["model"], row["gpu"], row["gpus"], row["micro_batch"], row["largest_micro_batch"]) for row in tables["by_model"]
                          if row["largest_micro_batch"] < row["micro_batch"]], [("70b", "a100_40gb", 128, 4, 3), ("13b", "a100_40gb", 8, 4, 3)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
