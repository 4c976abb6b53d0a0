"""Tests lab/validate-gpu: what it computes from the output of programs, and what it refuses.

test_validation.py MYLOS TEST_PROGRAM BENCH_KERNELS BENCH_ATTENTION     TEST_PROGRAM: a fast test program
"""

import math
import os
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
import unittest.mock

from validation_scratch import HANG_LIMIT, ROOT, Scratch, write
from validation import agreement, beside, bundle, commands, kernels, launching, main, nccl_nodes, record, report, sizes, target, tests, timing

GPU = {"name": "NVIDIA A100", "driver": "580.1", "memory_mib": "81920", "compute_capability": "8.0", "uuid": "GPU-1"}


class Beside(unittest.TestCase):
    def test_rates_of_thirds_of_a_run(self):
        records = [{"tokens": 10, "seconds": seconds} for seconds in (1, 1, 2, 2, 5, 5)]
        self.assertEqual(beside.rates_by_turn(records), [10, 5, 2])

    def test_memory_is_compared_only_if_both_report_it(self):
        self.assertEqual(beside.memory_figures([{"seconds": []}], 6), {})
        replies = [{"memory": 8, "peak_allocated": 5}, {"memory": 12, "peak_allocated": 4}]
        self.assertEqual(beside.memory_figures(replies, 6), {"memory": 12, "peak_allocated": 5, "memory_ours_over_theirs": 0.5})


class Attentions(unittest.TestCase):
    def kernels(self, precision, architecture=90, stand_in=False):
        session = types.SimpleNamespace(bundle=bundle.Bundle({"architecture": architecture}, pathlib.Path("/nowhere"), stand_in))
        return main.Session.attentions(session, precision)

    def test_tensor_cores_need_16_bits_and_a_gpu_that_has_them(self):
        self.assertEqual(self.kernels("bfloat16"), ["tensor-cores", "portable"])
        for architecture in (70, 80):
            self.assertEqual(self.kernels("half", architecture), ["tensor-cores", "portable"])
        for other in (self.kernels("float"), self.kernels("bfloat16", architecture=70), self.kernels("half", stand_in=True)):
            self.assertEqual(other, ["portable"])

    def test_cudnn_needs_16_bits_a_build_with_it_and_the_library(self):
        def kernels(precision="half", cudnn=True, stand_in=False):
            session = types.SimpleNamespace(bundle=bundle.Bundle({"architecture": 90, "cudnn": cudnn}, pathlib.Path("/nowhere"), stand_in))
            return main.Session.library_attentions(session, precision)

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": folder}):
            write(pathlib.Path(folder) / "libcudnn.so.9", "")
            self.assertEqual(kernels(), ["cudnn"])
            for other in (kernels("float"), kernels(cudnn=False), kernels(stand_in=True)):
                self.assertEqual(other, [])
        with unittest.mock.patch.object(main.target, "library_folders", lambda: iter(())):
            self.assertEqual(kernels(), [])

    def test_ratios_use_the_first_kernel_that_runs(self):
        def steps(_, attention):
            timed.append(attention)
            if attention in errors:
                raise errors[attention]
            return [{"tokens": 10, "seconds": 2 if attention == "works" else 4, "memory": 5}] * 3

        errors, timed = {"broken": commands.Failed("wrong"), "late": commands.OutOfTime("no time was left")}, []
        kinds = ["broken", "slower", "works", "portable"]
        ours = types.SimpleNamespace(session=types.SimpleNamespace(record=record.Record(), attentions=lambda _: kinds), name="m",
                                     subject=beside.Questions.__new__(beside.Questions), data=types.SimpleNamespace(counts="tokens"),
                                     timed_steps_of_ours=steps)
        ours.figure = lambda precision, who, rates, **more: ours.session.record.figure("beside", who=who)
        self.assertEqual(beside.Beside.timed_of_ours(ours, "half"), ("works", [5, 5, 5], 5))
        self.assertEqual(timed, ["broken", "slower", "works"])
        self.assertEqual([row["who"] for row in ours.session.record.rows("beside")], ["Mylos, attention slower", "Mylos, attention works"])
        self.assertEqual([check["name"] for check in ours.session.record.failed()], ["m, half, attention broken"])
        kinds[:] = ["works", "late"]
        self.assertEqual(beside.Beside.timed_of_ours(ours, "half"), ("works", [5, 5, 5], 5))
        kinds[:] = ["late", "works"]
        with self.assertRaises(commands.OutOfTime):
            beside.Beside.timed_of_ours(ours, "half")
        kinds[:] = ["broken"]
        with self.assertRaisesRegex(commands.Failed, "no run of ours"):
            beside.Beside.timed_of_ours(ours, "half")

    def test_memory_uses_the_kernel_with_the_fastest_step(self):
        timer = timing.Timing.__new__(timing.Timing)
        timer.session = types.SimpleNamespace(record=record.Record())
        self.assertEqual(timer.fastest("m", "half"), "portable")
        for attention, rate, precision in (("slow", 5, "half"), ("quick", 9, "half"), ("other", 99, "float")):
            timer.session.record.figure("steps", model="m", precision=precision, attention=attention, rate=rate)
        self.assertEqual(timer.fastest("m", "half"), "quick")


class Kernels(unittest.TestCase):
    def test_required_bandwidth_depends_on_the_size(self):
        row = lambda size, share, over, launches=1: {"bytes": size, "share_of_copy": share, "over_seconds": over, "launches": launches}
        self.assertEqual([kernels.is_as_asked(one) for one in (row(2.56e8, 0.81, 1), row(2.56e8, 0.79, 0), row(1e6, 0.1, 4e-6), row(1e6, 1, 6e-6),
                                                               row(1e6, 1, 9e-6, 2), row(1e6, 1, 11e-6, 2))],
                         [True, False, True, False, True, False])

    def test_missing_program_names_the_remedy(self):
        session = types.SimpleNamespace(bundle=bundle.Bundle({}, pathlib.Path("/nowhere"), True))
        with self.assertRaisesRegex(commands.Failed, "bench_kernels is not in the bundle; make it again with lab/bundle-gpu"):
            kernels.bench(session, commands.Clock(HANG_LIMIT), "bench_kernels")

    def test_speeds_are_compared_by_pass(self):
        ratios = beside.speed_ratios({"forward": 1.0, "backward": 2.0}, {"forward": 2.0, "backward": 1.0})
        self.assertEqual(ratios, {"forward": 2.0, "backward": 0.5, "both": 1.0})
        found = {"model": "m", "precision": "half", "forward": 0.001, "backward": 0.002}
        page = report.beside_attention_table([{**found, "who": "theirs"}, {**found, "who": "ours", "ours_over_theirs": ratios}])
        self.assertIn("| m | half | ours | 1.000 | 2.000 | 2.00 | 0.50 | 1.00 |", page)


class Reading(unittest.TestCase):
    def test_suites_and_their_tests(self):
        listing = "A word of main's\nStore/0.  # TypeParam = float\n  Rows\n  Bytes\nShapes/Attention.\n  InFloat/Plain  # GetParam() = Plain\n"
        self.assertEqual(tests.suites_of(listing), {"Store/0": ["Rows", "Bytes"], "Shapes/Attention": ["InFloat/Plain"]})

    def test_the_planned_memory(self):
        self.assertEqual(timing.planned_bytes("steps    8\nmemory   1.50 GiB at most: program 1 MiB\n"), 1.5 * 2**30)
        with self.assertRaises(commands.Failed):
            timing.planned_bytes("no such line")

    def test_nan_or_missing_losses_differ(self):
        self.assertAlmostEqual(agreement.difference([1.0, 2.0], [1.0, 2.002]), 0.001, places=5)
        for others in ([1.0], [1.0, math.nan], []):
            self.assertEqual(agreement.difference([1.0, 2.0], others), math.inf)

    def test_timeout_ends_a_command_and_its_children(self):
        done = commands.run(["sh", "-c", "sleep 6000 & sleep 6000"], 0.3)
        self.assertTrue(done.timed_out)
        self.assertRegex(done.reason(), "not done after")

    def test_reason_of_a_failed_command(self):
        self.assertEqual(commands.run(["sh", "-c", "echo one; echo two >&2; exit 3"], HANG_LIMIT).reason(), "two (exit code 3)")
        self.assertEqual(commands.run(["sh", "-c", "kill -11 $$"], HANG_LIMIT).reason(), "signal 11")
        self.assertEqual(commands.run(["/no/such/program"], HANG_LIMIT).code, 127)

    def test_reason_is_the_line_before_a_backtrace(self):
        text = "error( cudaErrorIllegalAddress): an illegal memory access\\nBacktrace:\\n    /bin/mylos [0x55aa]\\n[0x5578b6e22c31]"
        done = commands.run(["sh", "-c", f"printf '{text}\\n' >&2; kill -6 $$"], HANG_LIMIT)
        self.assertEqual(done.reason(), "error( cudaErrorIllegalAddress): an illegal memory access (signal 6)")

    def test_a_signal_ends_commands_and_keeps_what_was_found(self):
        script = """
import os, signal, sys, time, types
sys.path.insert(0, sys.argv[1])
from validation import commands, main, record
found = record.Record()
main.open_bundle = lambda *_: types.SimpleNamespace(manifest={"commit": "c"})
main.Session = lambda *_: types.SimpleNamespace(record=found, bundle=main.open_bundle(), unused=set(), prepare=lambda: None)
main.check_target = lambda *_: {}
def parts(*_):
    found.check("tests", "one", True)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    commands.run(["sleep", "6000"], 6000)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
main.run_parts = parts
main.report.write = lambda result, *_: print([(check["name"], check["passed"]) for check in result["checks"]]) or []
for number in main.SIGNALS:
    signal.signal(number, main.stop)
print(main.validate(types.SimpleNamespace(seconds=6000, bundle=None, dry_run=True, parts=[], output=None), None))
"""
        done = commands.run([sys.executable, "-c", script, ROOT / "lab"], HANG_LIMIT)
        self.assertEqual(done.output.splitlines(), ["[('one', True), ('the whole validation', False)]", "1"], done.errors)
        self.assertIn("stopped by SIGTERM", done.errors)

    def test_exhausted_budget_differs_from_a_timeout(self):
        with self.assertRaises(commands.OutOfTime):
            commands.Clock(0).limit(10)
        with self.assertRaises(commands.OutOfTime):
            commands.succeed(["sleep", "60"], commands.Clock(1.2).limit(10))
        with self.assertRaisesRegex(commands.Failed, "not done after"):
            commands.succeed(["sleep", "60"], commands.Clock(HANG_LIMIT).limit(0.2))


class Targets(unittest.TestCase):
    def test_older_gpu_names_the_bundle_to_make(self):
        with self.assertRaisesRegex(bundle.Refused, r"compute capability 9\.0, and this NVIDIA A100 has 8\.0; .*--arch 80"):
            target.check_architecture(GPU, 90)
        target.check_architecture(GPU, 80)
        target.check_architecture({**GPU, "compute_capability": "10.0"}, 90)

    def test_precision_that_the_gpu_lacks_is_not_run(self):
        self.assertEqual(target.capability_of({**GPU, "compute_capability": "7.0"}), 70)
        self.assertEqual(target.capability_of({**GPU, "compute_capability": "10.0"}), 100)
        all_sizes = sizes.Sizes().without("bfloat16")
        self.assertEqual((all_sizes.precisions, all_sizes.compare_precisions), (("float", "half"), ("half",)))
        self.assertEqual(all_sizes.models, sizes.Sizes().models)

    def test_cublas_is_searched_by_version(self):
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder) / "libcublasLt.so.12", "")
            with self.assertRaisesRegex(bundle.Refused, r"libcublasLt\.so\.13 is not found \(looked in .*install the CUDA 13 toolkit"):
                target.cublas_folder("13", [pathlib.Path(folder)])
            self.assertEqual(target.cublas_folder("12", [pathlib.Path("/nowhere"), pathlib.Path(folder)]), pathlib.Path(folder))


class Refusals(Scratch):
    def refused(self, pattern, *words, **environment):
        done = self.validate(*words, **environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.directory / "results").exists())

    def cublas(self):
        write(self.directory / "cuda/libcublasLt.so.13", "")
        return str(self.directory / "cuda")

    def test_missing_bundle(self):
        self.refused(r"^validate-gpu: no bundle in .*make it with lab/bundle-gpu", "--dry-run", "--bundle", self.directory)

    def test_truncated_bundle(self):
        folder = self.make_bundle()
        write(folder / "bundle.tar.xz", "not packed")
        self.refused("bundle.tar.xz cannot be unpacked", "--dry-run", "--bundle", folder)

    def test_bundle_without_the_program(self):
        folder = self.make_bundle()
        (folder / "cpu/bin/mylos").unlink()
        self.refused("cpu/bin/mylos is not in the bundle", "--dry-run", "--bundle", folder)

    def test_missing_driver_is_asked_for_the_first_visible_gpu(self):
        asked = self.directory / "asked"
        path = self.path_with(nvidia_smi=f"echo $* >{asked}; echo no devices were found; exit 6")
        self.refused("no GPU: nvidia-smi says: no devices were found", "--bundle", self.make_bundle(), LD_LIBRARY_PATH=self.cublas(),
                     PATH=path, CUDA_VISIBLE_DEVICES="2,3")
        self.assertIn("-i 2", asked.read_text())

    def test_gpu_of_another_architecture(self):
        self.refused(r"has 8\.0; make one with", "--bundle", self.make_bundle(), LD_LIBRARY_PATH=self.cublas(),
                     PATH=self.path_with(nvidia_smi="echo 'NVIDIA A100, 580.1, 81920, 8.0, GPU-1'"))

    def test_program_that_does_not_start(self):
        folder = self.make_bundle()
        (folder / "gpu/bin/mylos").unlink()
        write(folder / "gpu/bin/mylos", "#!/bin/sh\necho 'mylos: error: the driver is older than CUDA 13' >&2\nexit 1\n", executable=True)
        self.refused("the program for GPUs does not run here: the driver is older than CUDA 13", "--bundle", folder,
                     LD_LIBRARY_PATH=self.cublas(), PATH=self.path_with(nvidia_smi="echo 'NVIDIA H100, 580.1, 81920, 9.0, GPU-1'"))

    def test_wrong_results_are_a_failed_check(self):
        folder = self.make_bundle()
        program = folder / "gpu/bin/mylos"
        program.unlink()
        write(program, f"""#!/bin/sh
if [ "$1" = bench ]; then echo 'mylos: error: a product is not the one of the naive loop' >&2; exit 1; fi
exec '{pathlib.Path(sys.argv[1]).resolve()}' "$@"
""", executable=True)
        done = self.validate("--tests", "--only", pathlib.Path(sys.argv[2]).name, "--bundle", folder, LD_LIBRARY_PATH=self.cublas(),
                             PATH=self.path_with(nvidia_smi="echo 'NVIDIA H100, 580.1, 81920, 9.0, GPU-1'"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FAILED: target: the program computes: a product is not the one of the naive loop", done.stderr)
        self.assertIn("passed, 1 failed", done.stderr)

    def test_unknown_job(self):
        done = self.validate("--dry-run", "--tests", "--only", "test_none", "--bundle", self.make_bundle())
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: options: --only test_none: tests has no such job", done.stderr)


class Libraries(Scratch):
    def test_bundled_gcc_libraries_only_if_the_program_needs_them(self):
        folder = self.make_bundle()
        self.assertEqual(bundle.Bundle({}, folder, False).libraries, [folder / "lib"])
        (folder / "cpu/bin/mylos").unlink()
        write(folder / "cpu/bin/mylos", "#!/bin/sh\nexit 1\n", executable=True)
        self.assertEqual(bundle.Bundle({}, folder, False).libraries, [folder / "lib/gcc", folder / "lib"])


class Suites(Scratch):
    """If a test program dies in one test, only that test fails."""

    PROGRAM = """
name=$(echo "$1" | sed 's/.*=//'); file=$(echo "$2" | sed 's/.*json://')
case $1 in
  --gtest_list_tests) printf 'Some.\\n  Good\\n  Dies\\n' ;;
  *Dies | *'.*') kill -11 $$ ;;
  *) echo '{"testsuites": [{"testsuite": [{"name": "Good", "result": "COMPLETED"}]}]}' >"$file" ;;
esac"""

    def test_other_tests_run_one_by_one(self):
        folder = self.make_bundle()
        program = folder / "cpu/bin/test_core"
        write(program, f"#!/bin/sh{self.PROGRAM}\n".replace("Some.", "Other.\\n  A\\nSome."), executable=True)
        done = self.validate("--dry-run", "--tests", "--only", "test_core Some", "--bundle", folder, "--seconds", "600")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: tests: test_core Some: 1 of 2 fail; Dies: signal 11", done.stderr)
        self.assertIn(f"; repeat with: lab/validate-gpu --tests --only 'test_core Some' --dry-run --bundle {folder} ", done.stderr)
        self.assertNotIn("Other", done.stderr)

    def test_a_program_that_fails_after_its_tests_fails(self):
        folder = self.make_bundle()
        text = """case $1 in
  --gtest_list_tests) printf 'Some.\\n  Good\\n  Fine\\n' ;;
  *) echo '{"testsuites": [{"testsuite": [{"name": "Good", "result": "COMPLETED"}, {"name": "Fine", "result": "COMPLETED"}]}]}' >"${2#*json:}"
     echo "a stream was never ended" >&2
     exit 70 ;;
esac"""
        write(folder / "cpu/bin/test_core", f"#!/bin/sh\n{text}\n", executable=True)
        done = self.validate("--dry-run", "--tests", "--only", "test_core", "--bundle", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_core Some: 2 of 2 fail; Good: it does not end well: a stream was never ended (exit code 70)", done.stderr)


class Jobs(unittest.TestCase):
    def session(self, *only):
        session = main.Session.__new__(main.Session)
        session.only, session.unused = list(only), set(only)
        return session

    def test_only_selects_a_job_and_those_within_it(self):
        session = self.session("test_core", "peak", "memcheck test_nn BertLayer")
        wanted = ("test_core", "test_core Gemm", "peak, float", "memcheck test_nn", "memcheck test_nn BertLayer")
        for name in ("test_core_avx2", "test_nn", "peaks", "memcheck test_core", "memcheck test_nn BertModel"):
            self.assertFalse(session.wants(name), name)
        for name in wanted:
            self.assertTrue(session.wants(name), name)
        self.assertEqual(session.unused, set())
        self.assertTrue(all(self.session().wants(name) for name in wanted))

    def test_a_job_around_the_selected_one_is_no_use_of_it(self):
        session = self.session("memcheck test_nn BertLayer")
        self.assertTrue(session.wants("memcheck test_nn"))
        self.assertEqual(session.unused, {"memcheck test_nn BertLayer"})


class Sizes(Scratch):
    def test_a_bundle_that_is_too_large_is_refused(self):
        with open(self.directory / "bundle.tar.xz", "wb") as file:
            file.truncate(55 * 2**20)
        self.assertEqual(bundle.check_size(self.directory), 55)
        write(self.directory / "manifest.json", "{}")
        with self.assertRaisesRegex(bundle.Refused, r"has 55\.0 MiB, more than 55"):
            bundle.check_size(self.directory)


class Plan(unittest.TestCase):
    def test_parts_take_fifteen_minutes_in_the_order_of_need(self):
        self.assertEqual(list(main.PARTS), ["doctor", "agreement", "tests", "sanitize", "ranks", "time", "compare"])
        self.assertEqual(main.TOTAL, 900)

    def test_a_part_that_is_ended_loses_no_earlier_ones_report(self):
        def end(*_):
            raise SystemExit

        session, written = types.SimpleNamespace(record=record.Record()), []
        parts = {"one": main.Part(30, lambda session, clock: session.record.check("one", "works", True, f"{clock.left():.0f} s"), ""),
                 "two": main.Part(60, end, "")}
        options = types.SimpleNamespace(parts=list(parts))
        with unittest.mock.patch.object(main, "PARTS", parts), self.assertRaises(SystemExit):
            main.run_parts(session, options, commands.Clock(900), lambda: written.append(list(session.record.checks)))
        self.assertEqual([check["detail"] for check in written[0]], ["300 s"])


class Nodes(Scratch):
    """Ranks that share one GPU over NCCL."""

    def session(self, control=None, mylos="exit 0"):
        """`control`: a script in place of that of CUDA's Multi-Process Service."""
        folder = self.make_bundle()
        (folder / "gpu/bin/mylos").unlink()
        write(folder / "gpu/bin/mylos", f"#!/bin/sh\n{mylos}\n", executable=True)
        names = {**os.environ, "PATH": self.path_with(**({"nvidia_cuda_mps_control": control} if control else {}))}
        patch = unittest.mock.patch.dict(os.environ, names)
        patch.start()
        self.addCleanup(patch.stop)
        return types.SimpleNamespace(dry_run=False, bundle=bundle.Bundle({}, folder, False), scratch=self.directory, names=names, threads=2,
                                     record=record.Record())

    def shared(self, session):
        with nccl_nodes.service(session, commands.Clock(HANG_LIMIT)) as names:
            return names

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_each_rank_is_a_host_of_its_own(self):
        session = self.session()
        launch = launching.Launch(2, nccl_nodes.OWN_HOST, nccl_nodes.SHARED)
        done = commands.run([*launch.words(session), "sh", "-c", "echo $NCCL_HOSTID $MYLOS_SHARE_GPUS"], HANG_LIMIT,
                            target.environment(session.bundle, ROOT) | launch.more)
        self.assertEqual(sorted(done.output.splitlines()), ["rank-0 1", "rank-1 1"], done.errors)

    def test_the_service_is_started_and_ended(self):
        said = self.directory / "said"
        session = self.session(f"echo start $* >>{said}; [ $# = 1 ] || cat >>{said}")
        self.assertEqual(self.shared(session)["CUDA_MPS_PIPE_DIRECTORY"], str(self.directory / "mps-pipe"))
        self.assertEqual(said.read_text(), "start -d\nstart\nquit\n")

    def test_ranks_take_turns_if_the_program_does_not_compute_with_the_service(self):
        said = self.directory / "said"
        self.assertEqual(self.shared(self.session(f"[ $# = 1 ] || cat >>{said}", mylos="exit 1")), {})
        self.assertEqual(said.read_text(), "quit\n")

    def test_ranks_take_turns_if_the_service_does_not_start(self):
        self.assertEqual(self.shared(self.session("exit 1")), {})

    @unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun")
    def test_another_error_than_that_of_the_rank_fails(self):
        session = self.session()
        program = session.bundle.program("gpu", "failing_nccl")
        program.unlink(missing_ok=True)
        for said, passes in (("an error of its own", True), ("rank 1 (process 7) on x is gone", False)):
            write(program, f"#!/bin/sh\necho 'mylos: error: {said}' >&2\nexit 1\n", executable=True)
            session.names = target.environment(session.bundle, ROOT)
            nccl_nodes.fail_on_one_rank(session, commands.Clock(HANG_LIMIT), "throw", launching.Launch(2))
            self.assertEqual(session.record.checks[-1]["passed"], passes, session.record.checks[-1])


class Order(Scratch):
    def test_changed_kernels_come_first(self):
        folder = self.make_bundle()
        for program, suites in (("test_core", "Pooling/0 Sgd BatchNorm/0"), ("test_nn", "BertLayer Optimizer")):
            listing = "".join(f"{suite}.\\n  A\\n" for suite in suites.split())
            write(folder / "cpu/bin" / program, f"""#!/bin/sh
case $1 in
  --gtest_list_tests) printf '{listing}' ;;
  *) echo '{{"testsuites": [{{"testsuite": [{{"name": "A", "result": "COMPLETED"}}]}}]}}' >"${{2#*json:}}" ;;
esac
""", executable=True)
        done = self.validate("--dry-run", "--tests", "--only", "test_core", "--only", "test_nn", "--bundle", folder, "--threads", "1")
        passed = [line.split(",")[0].removeprefix("passed: ") for line in done.stderr.splitlines() if line.startswith("passed")]
        self.assertEqual(passed, ["test_core BatchNorm/0", "test_core Sgd", "test_nn Optimizer", "test_core Pooling/0", "test_nn BertLayer"], done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
