"""Tests lab/validate-gpu by dry runs of its parts on small files.

test_validation_parts.py MYLOS TEST_PROGRAM BENCH_KERNELS BENCH_ATTENTION [TEST_NCCL_ALONE FAILING_NCCL]     TEST_PROGRAM: a fast test program
"""

import dataclasses
import json
import pathlib
import shutil
import sys
import unittest
import unittest.mock

from validation_scratch import ROOT, Scratch, write
from validation import agreement, beside, launching, open_mpi, recorded, report, sizes, tests


class Doctor(Scratch):
    def doctor(self, findings):
        folder = self.make_bundle()
        program = folder / "cpu/bin/mylos"
        program.unlink()
        write(self.directory / "findings", json.dumps({"findings": findings}))
        write(program, f"""#!/bin/sh
if [ "$1" = doctor ]; then cat {self.directory}/findings; exit 1; fi
exec '{pathlib.Path(sys.argv[1]).resolve()}' "$@"
""", executable=True)
        write(folder / "cpu/bin/cudnn_plans", '#!/bin/sh\n[ "$1" = --describe ] && echo "{\\"a\\": 1}" >"$2"\n', executable=True)
        return self.validate("--dry-run", "--doctor", "--bundle", folder)

    def test_describes_the_gpu_for_cudnn_and_shows_warnings(self):
        done = self.doctor([{"level": "warning", "name": "GPU", "text": "it is warm", "advice": ""}])
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = [pathlib.Path(line) for line in done.stdout.splitlines()]
        self.assertEqual(json.loads(next(path for path in paths if path.name.endswith("-cudnn-device.json")).read_text()), {"a": 1})
        self.assertIn("- warning: GPU: it is warm\n", paths[1].read_text())

    def test_an_error_is_a_failed_check(self):
        done = self.doctor([{"level": "error", "name": "GPU", "text": "it is gone", "advice": ""}])
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: doctor: mylos doctor: GPU: it is gone; repeat with: lab/validate-gpu --doctor ", done.stderr)


class Recorded(Scratch):
    """Losses of the CPU that were recorded when the bundle was made."""

    def agree(self, folder):
        done = self.validate("--dry-run", "--agreement", "--only", "agreement Llama with heads of 64, float", "--bundle", folder)
        result = json.loads(pathlib.Path(done.stdout.splitlines()[0]).read_text())
        return done, result

    def test_recorded_losses_replace_the_runs_of_the_cpu(self):
        folder = self.make_bundle()
        few = {name: subject for name, subject in agreement.SUBJECTS.items() if name != "ResNet"}  # which takes longest
        with unittest.mock.patch.object(agreement, "SUBJECTS", few):
            recorded.record_losses(folder, dataclasses.replace(sizes.DRY, precisions=("float",)))
        file = folder / "data/losses.json"
        losses = json.loads(file.read_text())
        self.assertEqual(len(losses), len(few) + 1)  # BERT also without dropout
        self.assertTrue(all(len(found) == sizes.DRY.agreement_steps for found in losses.values()))
        done, result = self.agree(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["difference"] < 1e-6 for row in report.rows(result, "agreement")], [True])
        file.write_text(json.dumps({key: [1.01 * loss for loss in found] for key, found in losses.items()}))
        done, result = self.agree(folder)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"FAILED: agreement: losses of the GPU and of the CPU, Llama with heads of 64, float, portable: 4 steps differ by 9")
        # Those of another model are not taken.
        file.write_text(json.dumps({"another" + key: [1.01 * loss for loss in found] for key, found in losses.items()}))
        self.assertEqual(self.agree(folder)[0].returncode, 0)


@unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
class Ranks(Scratch):
    """The part of ranks. Where Open MPI 4 is installed, the bundle has its own copy, as on a machine without MPI."""

    def rank_program(self, text):
        folder = self.make_bundle()
        write(folder / "cpu/bin/test_communicator", f"#!/bin/sh\n{text}\n", executable=True)
        if shutil.which("ompi_info") and shutil.which("orterun"):
            open_mpi.copy_open_mpi(folder)
        return folder

    def run_ranks(self, folder, *words):
        done = self.validate("--dry-run", "--ranks", "--bundle", folder, "--threads", "1", "--seconds", "2000", *words)
        return done, json.loads(pathlib.Path(done.stdout.splitlines()[0]).read_text())

    def test_two_ranks_have_the_losses_of_one(self):
        done, result = self.run_ranks(self.rank_program('echo "[  PASSED  ] 3 tests."'))
        self.assertEqual(done.returncode, 0, done.stderr)
        passed = [check["name"] for check in result["checks"]]
        self.assertIn("losses of 2 ranks over mpi and of one, replicated", passed)
        self.assertIn("losses of 2 ranks over mpi and of one, sharded", passed)
        for mode in launching.MODES:
            self.assertIn(f"losses of 4 ranks over mpi and of one, {mode}", passed)
        self.assertEqual([row["mode"] for row in report.rows(result, "connections")], ["replicated", "hybrid"])
        self.assertIn("test_communicator on 2 ranks", passed)
        if len(sys.argv) > 5:
            self.assertIn("test_nccl_alone NcclAlone", passed)
            self.assertIn("kill on one of 4 ranks", passed)
            self.assertIn("throw on one of 4 ranks", passed)
        self.assertTrue(all(row["steps"] == 4 for row in report.rows(result, "ranks")))
        self.assertIn("nccl", [entry["part"] for entry in result["left_out"]])  # needs two GPUs

    def test_a_failing_rank_or_a_program_without_tests_is_one_line_with_its_command(self):
        folder = self.rank_program('echo "rank 1: Suite.Test: file.cpp:7: it differs"; echo more; exit 1')
        done, _ = self.run_ranks(folder, "--only", "test_communicator")
        self.assertEqual(done.returncode, 1)
        line = next(line for line in done.stderr.splitlines() if line.startswith("FAILED"))
        self.assertRegex(line, r"^FAILED: ranks: test_communicator on 2 ranks: rank 1: Suite.Test: file.cpp:7: it differs; "
                               r"repeat with: lab/validate-gpu --ranks --only test_communicator --dry-run ")
        write(folder / "cpu/bin/test_communicator", '#!/bin/sh\necho "[  PASSED  ] 0 tests."\n', executable=True)
        done, _ = self.run_ranks(folder, "--only", "test_communicator")
        self.assertEqual(done.returncode, 1, done.stderr)


class Sanitizer(Scratch):
    """The part of CUDA's own checks, with a stand-in for compute-sanitizer that starts the program."""

    PROGRAM = """
file=$(echo "$*" | sed 's/.*json://')
case $1 in
  --gtest_list_tests) printf 'Json.\\n  Reads\\nTypes/Pooling/0.\\n  Rows\\nLayerNorm/0.\\n  Rows\\n' ;;
  *) echo '{"testsuites": [{"testsuite": [{"name": "Rows", "result": "COMPLETED"}]}]}' >"$file" ;;
esac"""
    TOOL = """
tool=$2
while [ "${1#/}" = "$1" ]; do shift; done
"$@" || exit
"""

    def sanitize(self, tool, *words):
        folder = self.make_bundle()
        write(folder / "cpu/bin/test_core", f"#!/bin/sh{self.PROGRAM}\n", executable=True)
        done = self.validate("--dry-run", "--sanitize", "--bundle", folder, "--threads", "2", "--seconds", "2000", *words,
                             PATH=self.path_with(compute_sanitizer=self.TOOL + tool))
        return done, json.loads(pathlib.Path(done.stdout.splitlines()[0]).read_text())

    def test_suites_with_kernels_run_under_each_tool(self):
        done, result = self.sanitize("")
        self.assertEqual(done.returncode, 0, done.stderr)
        passed = [check["name"] for check in result["checks"]]
        for name in ("memcheck test_core LayerNorm/0", "racecheck test_core LayerNorm/0", "blocking test_core LayerNorm/0",
                     *(f"losses with CUDA_LAUNCH_BLOCKING, {precision}" for precision in ("float", "bfloat16", "half"))):
            self.assertIn(name, passed)
        self.assertNotIn("Json", " ".join(passed))
        suites = [name for name in passed if "check " in name]
        self.assertEqual(suites, [f"{tool} test_core {suite}" for suite in ("LayerNorm/0", "Types/Pooling/0") for tool in ("memcheck", "racecheck")])

    def test_an_error_of_a_tool_fails_its_suite_alone(self):
        race = """case "$tool $*" in memcheck* | *Pooling*) exit ;; esac
echo "========= COMPUTE-SANITIZER"
echo "========= Error: Race reported between Read access at kernel and Write access"
exit 99"""
        done, result = self.sanitize(race, "--only", "memcheck", "--only", "racecheck")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([check["name"] for check in result["checks"] if not check["passed"]], ["racecheck test_core LayerNorm/0"])
        self.assertIn("memcheck test_core LayerNorm/0", [check["name"] for check in result["checks"] if check["passed"]])
        self.assertRegex(done.stderr, r"FAILED: .*Error: Race reported between .*; "
                                      r"repeat with: lab/validate-gpu --sanitize --only 'racecheck test_core LayerNorm/0' ")

    def test_a_tool_that_does_not_work_is_left_out(self):
        done, result = self.sanitize("echo 'Device not supported' >&2; exit 1", "--only", "memcheck")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it does not work here: Device not supported (exit code 1)", [entry["why"] for entry in result["left_out"]])

    def test_losses_that_depend_on_blocking_fail(self):
        folder = self.make_bundle()
        for build in ("cpu", "gpu"):
            (folder / build / "bin/mylos").unlink()
            write(folder / build / "bin/mylos", f"""#!/bin/sh
if [ "$1" = train ] && [ -n "$CUDA_LAUNCH_BLOCKING" ]; then set -- "$@" --seed 99; fi
exec '{pathlib.Path(sys.argv[1]).resolve()}' "$@"
""", executable=True)
        done = self.validate("--dry-run", "--sanitize", "--only", "blocking float", "--bundle", folder, "--threads", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: checks of CUDA: losses with CUDA_LAUNCH_BLOCKING, float: step 1 is the first that differs", done.stderr)

    def test_suites_of_the_source_tree(self):
        core, nn, families = (tests.suites_in(ROOT / tests.FOLDERS[program]) for program in ("test_core", "test_nn", "test_families"))
        self.assertEqual((core["LayerNorm"], core["TensorCoreAttention"], families["BertLayer"]),
                         ("test_layer_norm", "test_tensor_core_attention", "test_bert_layer"))
        words = {word: any(word in file for file in (*core.values(), *nn.values(), *families.values())) for word in tests.FIRST}
        self.assertTrue(all(words.values()), words)


class Peers(Scratch):
    """The comparison, with a stand-in for PyTorch that answers every request, with losses of its own."""

    PYTHON = f"""#!{sys.executable}
import json, sys
if sys.argv[1] == "-c":
    print("False")
    sys.exit()
for line in sys.stdin:
    request = json.loads(line)
    kind = request["do"]
    reply = {{"torch": "2", "transformers": "5", "cuda": None}} if kind == "load" else {{"forward": 1, "backward": 1}}
    if kind == "steps":
        reply = {{"seconds": [1] * len(request["batches"]), "losses": [1] * len(request["batches"]), "counts": [1] * len(request["batches"])}}
    print(json.dumps(reply), flush=True)
"""

    def test_bert_llama_and_resnet_are_compared(self):
        python = write(self.directory / "python", self.PYTHON, executable=True)
        done = self.validate("--dry-run", "--compare", "--bundle", self.make_bundle(), "--threads", "1", "--seconds", "3000", MYLOS_PYTHON=str(python))
        result = json.loads(pathlib.Path(done.stdout.splitlines()[0]).read_text())
        failed = [check["name"] for check in result["checks"] if not check["passed"]]
        self.assertTrue(failed and all(name.startswith("losses, ") for name in failed), failed)
        found = report.rows(result, "beside")
        units = {row["model"]: row["unit"] for row in found}
        self.assertEqual(units, {"BERT-tiny": "real tokens/s", "Llama": "real tokens/s", "ResNet": "images/s"})
        for model, ways in (("BERT-tiny", beside.QUESTION_WAYS), ("Llama", beside.TEXT_WAYS), ("ResNet", beside.IMAGE_WAYS)):
            theirs = [row for row in found if row["model"] == model and "ours_over_theirs" in row]
            self.assertEqual([row["who"] for row in theirs], [f"PyTorch, {name}" for name in ways])
            self.assertTrue(all(row["rate"] > 0 and not row["losses_agree"] for row in theirs))


class DryRun(Scratch):
    def test_every_part_runs_and_writes_its_tables(self):
        # Each job in one precision, and every precision in some job.
        subjects = zip(agreement.SUBJECTS, ("bfloat16", "half", "float", "bfloat16"), strict=True)
        jobs = [*(f"agreement {name}, {precision}" for name, precision in subjects), "agreement resumed, float", pathlib.Path(sys.argv[2]).name,
                "kernel", "kernels that move bytes, bfloat16", "attention, 2k", "attention, 8k", "step, ResNet", "step, Llama",
                *(f"{job}, half" for job in ("peak", "step, BERT-tiny", "memory, BERT-tiny", "products, BERT-tiny", "attention, BERT-tiny"))]
        only = [word for job in jobs for word in ("--only", job)]
        done = self.validate("--dry-run", *only, "--bundle", self.make_bundle(), "--threads", "1", "--seconds", "5000")
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = [pathlib.Path(line) for line in done.stdout.splitlines()]
        self.assertEqual([path.suffix for path in paths[:2]], [".json", ".md"])
        steps = {path.stem[path.stem.index("step-") :]: json.loads(path.read_text()) for path in paths[2:]}
        self.assertEqual(sorted(steps), ["step-bert-tiny-half", "step-llama-bfloat16", "step-resnet-bfloat16"])
        self.assertEqual([steps[name]["calibration"]["precision"] for name in sorted(steps)], ["half", "bfloat16", "bfloat16"])
        result = json.loads(paths[0].read_text())
        self.assertEqual([check for check in result["checks"] if not check["passed"]], [])
        self.assertEqual([entry["part"] for entry in result["left_out"]], ["beside PyTorch"])
        rows = {name: report.rows(result, name) for name in ("tests", "agreement", "peaks", "steps", "kernels", "memory", "products", "traffic", "attention")}
        self.assertTrue(all(rows.values()), {name: len(found) for name, found in rows.items()})
        self.assertGreater(rows["tests"][0]["passed"], 0)
        self.assertEqual({row["kernel"] for row in rows["traffic"]} & {"batch-norm", "batch-norm-gradient", "large-vocabulary-loss"},
                         {"batch-norm", "batch-norm-gradient", "large-vocabulary-loss"})
        self.assertEqual(rows["traffic"][0]["kernel"], "batch-norm")
        self.assertEqual([row["model"] for row in rows["attention"]][:2], ["heads of 128, 2k", "heads of 128, 8k"])
        self.assertEqual({row["what"].rpartition("CPU, ")[2].split(",")[0] for row in rows["agreement"] if "losses" in row["what"]}, set(agreement.SUBJECTS))
        self.assertTrue(all(0 < row["share_of_peak"] for row in rows["products"]))
        self.assertTrue(all(row["taken"] > 0 and row["planned"] > 0 for row in rows["memory"]))
        page = paths[1].read_text()
        for expected in ("No figure here is of a GPU", "## Tests", "## Time", "## Beside PyTorch", "## Left out", "mylos::optimizer::adamw", "| layer-norm-gradient | bfloat16 |", "| BERT-tiny | portable | half | 0.1 |"):
            self.assertIn(expected, page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
