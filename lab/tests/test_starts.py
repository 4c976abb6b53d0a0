"""Starts the programs of the laboratory that no other test starts, on tiny sizes, or beside programs that only answer.

test_starts.py BUILD
"""

import json
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
LAB = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAB))
from comparison import models, scaling

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "which", "mill", "?", "the", "a"]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
# What cuobjdump prints of a kernel, for its two calls.
KERNEL = "_ZN5mylos6RotateEv"
DUMP = f"""case "$*" in
*-res-usage*) echo ' Function {KERNEL}:'; echo '  REG:28 STACK:0 SHARED:16' ;;
*) echo '  Function : {KERNEL}'; echo '        /*0010*/                   LDG.E.128 R4, [R2.64] ;' ;;
esac"""


class Starts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        self.build = pathlib.Path(sys.argv[1])

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def script(self, name, text):
        path = self.write(name, f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def data(self):
        """Writes questions and a vocabulary, as MYLOS_DATA has them. Returns the vocabulary."""
        rows = [{"context": " ".join(["mill"] * (number % 9 + 1)), "qas": [{"id": f"q{number}", "question": "which mill ?", "answers":
                 [{"text": "mill", "answer_start": 0}]}]} for number in range(60)]
        for name in ("train", "dev"):
            self.write(f"data/squad/v1.1/{name}.json", json.dumps({"version": "1.1", "data": [{"title": "mills", "paragraphs": rows}]}))
        return self.write("data/vocab/bert-base-uncased.txt", "\n".join(WORDS) + "\n")

    def start(self, program, *words, **environment):
        names = {**os.environ, "MYLOS_DATA": str(self.directory / "data"), "MYLOS_PYTHON": "/bin/false", **environment}
        return subprocess.run([LAB / program, *map(str, words)], capture_output=True, text=True, env=names)

    def test_compare_leaves_out_rows_without_their_peers(self):
        self.data()
        output = self.directory / "rows.json"
        done = self.start("compare", "--only", "tokenising", "--rounds", "1", "--program", self.build / "mylos", "--output", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: tokenising: ", done.stdout)
        self.assertEqual(json.loads(output.read_text())["conditions"]["rounds"], 1)

    def test_scaling_fits_its_law(self):
        self.data()
        output = self.directory / "scaling.json"
        words = [LAB / "scaling", "--rounds", "1", "--program", self.build / "mylos", "--plot", self.directory / "law.svg", "--output", output]
        with unittest.mock.patch.multiple(scaling, LENGTHS=(8, 16), BATCHES=(1, 2), LAYERS=(1, 2), steps_for=lambda _: 2,
                                          BASE={"length": 8, "batch": 2, "layers": 1}, SHAPE=SMALL), \
                unittest.mock.patch.dict(os.environ, MYLOS_DATA=str(self.directory / "data")), \
                unittest.mock.patch.object(sys, "argv", list(map(str, words))), unittest.mock.patch("sys.stdout"):
            runpy.run_path(str(LAB / "scaling"), run_name="__main__")
        self.assertEqual(list(json.loads(output.read_text())["sweeps"]), ["length", "batch", "layers"])
        self.assertIn("<svg", (self.directory / "law.svg").read_text())

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_plan_measures_plans_and_trains(self):
        model = models.make_random_bert(self.directory / "model", self.data(), SMALL)
        done = self.start("plan", "--model", model, "--batch", "4", "--steps", "6", "--rounds", "1", "--program", self.build / "mylos")
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: steps of so small a model are not those of the plan
        self.assertEqual(done.stdout.count("\n| "), 3, done.stderr)

    def test_checkpoint_compares_rates(self):
        answer = json.dumps({"save": 0.0005, "load": 0.25, "bytes": 1 << 20, "tensors": []})
        self.script("build/bench/bench_checkpoint", f"mkdir -p \"$1\"; echo '{answer}'")
        done = self.start("checkpoint", "--rounds", "1", "--ranks", "1", "--build", self.directory / "build", "--directory", self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out: PyTorch and safetensors", done.stderr)
        self.assertRegex(done.stdout, r"\| Mylos, 1 rank +\| 0\.00 +\| 1\.95 .*\| 0\.25 ")

    def test_fidelity_holds_and_does_not(self):
        steps = [{"step": step, "loss": 2.0} for step in range(1, 4)]
        recorded = self.write("reference/minilm-v1.1/steps.jsonl", "\n".join(map(json.dumps, steps)))
        scores = self.write("reference/minilm-v1.1/results.json", json.dumps({"exact": 40.0, "f1": 50.0}))
        program = self.script("mylos", 'while [ "$1" != --output ]; do shift; done; mkdir -p "$2"\n'
                              f'cp {recorded} "$2/metrics.jsonl"; cp {scores} "$2"')
        words = ["fidelity", "--program", program]
        done = self.start(*words, MYLOS_REFERENCE=str(self.directory / "reference"))
        self.assertEqual((done.returncode, done.stdout.count("   ok")), (0, 4), done.stderr)
        self.script("mylos", program.read_text().replace("cp ", "sed s/2.0/2.1/ ", 1).replace('"$2/metrics', '>"$2/metrics'))
        done = self.start(*words, MYLOS_REFERENCE=str(self.directory / "reference"))
        self.assertEqual((done.returncode, done.stdout.count("NOT HELD")), (1, 2), done.stderr)

    def test_kernel_resources_of_a_dump(self):
        self.script("path/cuobjdump", DUMP)
        done = self.start("kernel_resources", "program", "--markdown", PATH=f"{self.directory / 'path'}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([cell.strip() for cell in done.stdout.splitlines()[2].split("|")[1:9]], ["Rotate", "28", "0", "16", "0", "1", "1", "0"])
        self.assertIn("is not on the path", self.start("kernel_resources", "program", PATH=os.path.dirname(sys.executable)).stderr)

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_runs_on_many_ranks_agree(self):
        done = subprocess.run([sys.executable, "-B", LAB / "nodes/scale_runs.py", "4", self.build], capture_output=True, text=True,
                              env={**os.environ, "MODES": "sharded"})
        self.assertEqual(len(done.stdout.splitlines()), 4 + done.stdout.count("WRONG: "), done.stdout + done.stderr)
        self.assertNotIn("losses", "".join(line for line in done.stdout.splitlines() if line.startswith("WRONG")))

    def test_scripts_refuse_what_they_cannot_do(self):
        for words, said in ((("test-nodes", "0"), "test-nodes: '0' is no rate in Mbit/s"),
                            (("test-scale", "few"), "test-scale: 'few' is no number of ranks"),
                            (("bundle-gpu", "--arch", "60"), "bundle-gpu: --arch 60: expected 70, 80 or 90")):
            done = self.start(*words)
            self.assertEqual((done.returncode, done.stderr), (1, said + "\n"))

    def test_recorders_are_python(self):
        for path in sorted((LAB / "record").glob("*.py")):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


class Results(unittest.TestCase):
    def test_the_page_of_ranks_has_the_rows_of_bench_scale(self):
        page = (LAB / "results/ranks.md").read_text(encoding="utf-8")
        done = subprocess.run([pathlib.Path(sys.argv[1]) / "bench/bench_scale", "--ranks", "16"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            self.assertIn(line + "\n", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
