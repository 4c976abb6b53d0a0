"""Tests lab/exchanges on small sizes: what it counts, times and finds.

test_exchanges.py BUILD
"""

import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD, LAYER, EMBEDDINGS, LAYERS = 1538, 7087872, 23837184, 12  # elements of BERT-base's units
DIVISOR = 20000
WAYS = ("ours", "blocking", "nonblocking")


def run(*words):
    done = subprocess.run([ROOT / "lab/exchanges", sys.argv[1], "--divisor", str(DIVISOR), "--json", *words], capture_output=True, text=True)
    if "is not Open MPI's" in done.stderr or "build it with MPI" in done.stderr:
        raise unittest.SkipTest(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def can_name_hosts():
    return subprocess.run(["unshare", "--uts", "--mount", "true"], capture_output=True).returncode == 0


class Exchanges(unittest.TestCase):
    def test_times_every_way_in_turns(self):
        rows = run("--only", "times", "--rounds", "3")["times"]
        self.assertEqual(len(rows), 7)
        for row in rows:
            for way in WAYS:
                self.assertGreater(row[way]["seconds"], 0, row)
                self.assertLessEqual(row[way]["least"], row[way]["ratio"], row)
                self.assertLessEqual(row[way]["ratio"], row[way]["most"], row)

    @unittest.skipUnless(can_name_hosts(), "only root may give simulated nodes a name")
    def test_counts_what_mylos_counts_and_an_array_once_a_node(self):
        rows = {(row["operation"], row["type"], row["nodes"]): row for row in run("--only", "counts", "--exchange", "broadcast")["counts"]}
        self.assertEqual(len(rows), 3)
        # An array has a whole number of elements on each rank.
        whole = lambda ranks: sum(times * ranks * -(-max(size // DIVISOR, 1) // ranks) for size, times in ((EMBEDDINGS, 1), (LAYER, LAYERS), (HEAD, 1)))
        for nodes in (2, 4):
            row = rows["broadcast", "float", nodes]
            self.assertEqual(row["ours"]["bytes"], row["counted"]["network_bytes"], row)
            self.assertEqual(row["ours"]["bytes"], 4 * (nodes - 1) * whole(2 * nodes), row)
        for row in rows.values():
            for way in (*WAYS, *(["han"] if row["nodes"] > 1 else [])):
                self.assertGreater(row[way]["bytes"], 0, row)
                self.assertGreater(row[way]["messages"], 0, row)

    @unittest.skipUnless(can_name_hosts(), "only root may give simulated nodes a name")
    def test_finds_what_mylos_promises_and_the_library_does_not(self):
        holds = {name: {} for name in WAYS}
        for row in run("--only", "properties", "--exchange", "all-reduce")["properties"]:
            for way in WAYS:
                holds[way][row["property"]] = row[way]["holds"]
        self.assertEqual(set(holds["ours"]), {"float-sums", "order", "counts", "progress", "limit", "cancel"})
        # How much of an exchange is hidden depends on what else the machine does.
        for way in WAYS:
            del holds[way]["progress"]
        self.assertTrue(all(holds["ours"].values()), holds)
        for way, lost in (("blocking", ("float-sums", "counts", "limit", "cancel")), ("nonblocking", ("float-sums", "counts", "cancel"))):
            self.assertEqual([name for name in lost if holds[way][name]], [], holds)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
