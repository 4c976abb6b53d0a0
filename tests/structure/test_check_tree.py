"""Tests that the checks of check_tree.py can fail: each runs on a small tree that breaks its rule, and on one that follows it."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_tree


class CheckTree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def breach_of_include(self, path, target):
        """Returns the error for a file that includes another one, or "" if it may."""
        self.write(target, "#pragma once\n")
        self.write(path, f'#include "{target}"\n')
        breaches = list(check_tree.check_includes(self.root))
        (self.root / path).unlink()
        self.assertLessEqual(len(breaches), 1)
        return breaches[0] if breaches else ""

    def test_only_the_folder_of_a_family_names_it(self):
        for path in ["core/device.hpp", "nn/layers/linear.cpp", "parallel/launch/launch.cpp", "train/engine/loop/trainer.cpp", "app/train.cpp"]:
            for line in ["// as in BERT", "struct SquadConfig;", 'fail("bert_config");', "// as in CodeLlama", "LlamaShape shape;"]:
                with self.subTest(path=path, line=line):
                    self.write(path, line + "\n")
                    breaches = list(check_tree.check_families(self.root))
                    self.assertEqual(len(breaches), 1)
                    self.assertTrue(breaches[0].startswith(f"{path}:1: names "), breaches[0])
                    (self.root / path).unlink()
        for path in ["families/bert/bert_layer.cpp", "data/squad/squad.cpp", "tests/app/test_runs.cpp"]:
            self.write(path, "// BERT on SQuAD\n")
        for path in ["families/llama/llama.cpp", "families/llama/llama_config.cpp"]:
            self.write(path, "// Llama\n")
        # A task knows its data set and describes other programs, and names no family itself.
        self.write("tasks/question_answering/squad_task.cpp", 'Recipe{"BERT on \\"SQuAD\\" with Llama", squad};  // SQuAD\n')
        self.assertEqual(list(check_tree.check_families(self.root)), [])
        for path, line in [("families/llama/llama.cpp", "// as BERT"), ("families/bert/bert_layer.cpp", "// as Llama"),
                           ("tasks/question_answering/squad_task.cpp", "// BERT"), ("tasks/language_modeling/text_task.cpp", "LlamaShape shape;"),
                           ("tasks/image_classification/image_task.cpp", "// ResNet")]:
            self.write(path, line + "\n")
        self.assertEqual(len(list(check_tree.check_families(self.root))), 5)

    def breaches_of_settings(self, path, line):
        self.write("app/options/tool_options.hpp", 'named("micro-batch", "N", batches);\n')
        self.write("tasks/language_modeling/language_modeling_options.cpp", 'own(\n    "text-field", "NAME");\n')
        self.write(path, line + "\n")
        breaches = list(check_tree.check_settings(self.root))
        (self.root / path).unlink()
        return breaches

    def test_options_spelled_by_the_engine(self):
        for path in ["core/base/files/files.cpp", "nn/optimizer.cpp", "data/text/documents.hpp", "parallel/launch/launch.cpp", "train/engine/loop/trainer.cpp"]:
            for line in [
                'fail("use a smaller --micro-batch");',
                'fail(fmt::format("{} (--micro-batch {})", why, size));',
                'fail("a" "b" "--micro-batch");',
                "const char c = '\"'; fail(R\"(use --micro-batch)\");",
                'fetch("https://example.org"); fail("--micro-batch"); // its end',
            ]:
                with self.subTest(path=path, line=line):
                    self.assertEqual(self.breaches_of_settings(path, line),
                                     [f'{path}:1: spells the option --micro-batch; write setting("micro-batch") of core/base/setting_error.hpp'])
            for line in ['fail(fmt::format("leave out --{}", name));', 'fail("--" + name);']:
                with self.subTest(path=path, line=line):
                    self.assertEqual(len(self.breaches_of_settings(path, line)), 1)

    def test_settings_that_are_not_options(self):
        for line in ['fail(setting("micro-bath"));', 'throw SettingError("micro-bath", "4", why);', 'throw SettingError(\n    "micro-bath", why);']:
            with self.subTest(line=line):
                breaches = self.breaches_of_settings("train/engine/loop/trainer.cpp", "\n" + line)
                self.assertEqual(breaches, ["train/engine/loop/trainer.cpp:2: names the setting micro-bath, and no table of options has it"])

    def test_settings_and_options_of_other_programs(self):
        for path, line in [
            ("train/engine/loop/trainer.cpp", '// as with --micro-batch\n/* --mode */ int i = 3; --i; fail(setting("micro-batch"));'),
            ("data/text/documents.cpp", 'fail("by " + setting("text-field", field) + "; a - b, a--b, a -- b, ---");'),
            ("core/base/files/download.cpp", 'const Words words = {"curl", "--output", file};'),
            ("parallel/launch/launcher.cpp", 'fail("srun --mpi=list shows them");'),
            ("tasks/language_modeling/text_task.cpp", 'fail("use a smaller --micro-batch");'),
            ("app/train.cpp", 'fail("use a smaller --micro-batch");'),
        ]:
            with self.subTest(path=path):
                self.assertEqual(self.breaches_of_settings(path, line), [])
        self.assertEqual(len(self.breaches_of_settings("core/base/files/files.cpp", 'const Words words = {"curl", "--output", file};')), 1)
        self.assertEqual(len(self.breaches_of_settings("parallel/launch/launcher.cpp", 'fail("use --output");')), 1)

    def test_arrow_against_the_direction(self):
        for path, target in [
            ("core/base/files/files.cpp", "core/numeric.hpp"),
            ("data/huggingface/fetch.cpp", "core/device.hpp"),
            ("nn/optimizer.cpp", "families/bert/bert_layer.hpp"),
            ("parallel/sharding/strategy_kind.cpp", "parallel/checkpoint/checkpoint.hpp"),
            ("train/engine/loop/trainer.cpp", "data/squad/squad.hpp"),
            ("train/planning/machine.cpp", "tasks/question_answering/squad_task.hpp"),
            ("tasks/interface/task_kind.cpp", "data/squad/squad.hpp"),
            ("tasks/question_answering/squad_task.cpp", "app/options/options.hpp"),
            ("app/report/html.cpp", "app/program.hpp"),
            ("app/train.cpp", "tasks/language_modeling/language_task.hpp"),
            ("app/report/report_page.cpp", "tasks/question_answering/run_answers.hpp"),
            ("app/options/options.cpp", "tasks/image_classification/image_config.hpp"),
        ]:
            with self.subTest(path=path, target=target):
                folder = path.rsplit("/", 1)[0]
                self.assertEqual(self.breach_of_include(path, target), f"{path}:1: {folder} must not include {target}")

    def test_arrow_along_the_direction(self):
        for path, target in [
            ("data/squad/squad.cpp", "data/squad/answers.hpp"),
            ("data/huggingface/safetensors.cpp", "core/numeric.hpp"),
            ("train/engine/loop/trainer.cpp", "parallel/checkpoint/checkpoint.hpp"),
            ("tasks/question_answering/squad_task.cpp", "families/bert/bert_layer.hpp"),
            ("app/train.cpp", "app/runs/resumption.hpp"),
            ("app/report/report_samples.cpp", "tasks/interface/run_report.hpp"),
            ("app/options/options.cpp", "tasks/task_kinds.hpp"),
            ("tests/core/test_arena.cpp", "train/engine/loop/trainer.hpp"),
        ]:
            with self.subTest(path=path, target=target):
                self.assertEqual(self.breach_of_include(path, target), "")

    def test_every_folder_may_include_those_below_and_none_above(self):
        order = list(check_tree.ARROWS)
        for folder in order:
            for other in order:
                if other != folder and check_tree.may_include(folder, f"{other}/file.hpp"):
                    self.assertFalse(check_tree.may_include(other, f"{folder}/file.hpp"), f"{folder} and {other} include each other")

    def test_folder_missing_from_the_table(self):
        self.assertEqual(self.breach_of_include("nn/mamba/mamba.cpp", "nn/model.hpp"),
                         "nn/mamba/mamba.cpp: nn/mamba has no line in the table of folders (ARROWS in check_tree.py)")

    def write_tests_without_kokkos(self):
        files = {"tests/core/CMakeLists.txt": "mylos_tests(\n  core_base\n  WITHOUT_KOKKOS\n  SOURCES\n  base/files/test_files.cpp\n"
                                              "  LINK\n  mylos::data_text)\n",
                 "tests/core/base/files/test_files.cpp": '#include "core/base/files/files.hpp"\n', "core/base/files/files.hpp": "", "core/base/files/files.cpp": "",
                 "core/CMakeLists.txt": "mylos_folder(\n  core\n  SOURCES\n  device.cpp\n  PUBLIC\n  Kokkos::kokkos)\n",
                 "data/text/CMakeLists.txt": "mylos_folder(\n  data/text\n  SOURCES\n  text.cpp\n  PUBLIC\n  mylos::core_base)\n",
                 **dict.fromkeys(check_tree.INCLUDE_NO_KOKKOS, ""),
                 "tests/app/report/test_html.cpp": '#include "app/report/html.hpp"\n', "app/report/html.hpp": "",
                 "app/report/html.cpp": "#include <Kokkos_Core.hpp>\n", "tests/app/test_runs.cpp": "#include <Kokkos_Core.hpp>\n"}
        for path, text in files.items():
            self.write(path, text)

    def kokkos_with(self, path, text):
        """Returns the errors about Kokkos of a tree without any but for the text of one file."""
        self.write_tests_without_kokkos()
        self.write(path, text)
        return list(check_tree.check_kokkos(self.root))

    def test_folder_that_does_not_link_what_it_includes(self):
        self.write("nn/CMakeLists.txt", "mylos_folder(nn SOURCES body.cpp)\n")
        self.write("nn/layers/CMakeLists.txt", "mylos_folder(\n  nn/layers\n  SOURCES\n  linear.cpp\n  PUBLIC\n  mylos::nn)\n")
        self.write("families/CMakeLists.txt", "mylos_folder(families SOURCES tables.cpp PUBLIC mylos::nn_layers)\n")
        self.write("nn/layers/linear.cpp", '#include "nn/body.hpp"\n')
        self.write("families/within/tables.cpp", '#include "nn/layers/linear.hpp"\n#include "nn/body.hpp"\n')
        self.assertEqual(list(check_tree.check_links(self.root)), [])
        self.write("nn/body.cpp", '#include "nn/layers/linear.hpp"\n')
        self.assertEqual(list(check_tree.check_links(self.root)),
                         ["nn/body.cpp: mylos::nn links no mylos::nn_layers, whose nn/layers/linear.hpp it includes"])

    def test_test_that_reaches_kokkos(self):
        self.assertEqual(self.kokkos_with("core/base/files/files.hpp", ""), [])
        for path in ["core/base/files/files.hpp", "core/base/files/files.cpp"]:
            self.assertEqual(self.kokkos_with(path, "#include <Kokkos_Core.hpp>\n"),
                             [f"tests/core/base/files/test_files.cpp: reaches Kokkos: {path} > Kokkos_Core.hpp"])
        self.assertEqual(self.kokkos_with("app/report/html.hpp", "  # include <Kokkos_Macros.hpp>\n"),
                         ["tests/app/report/test_html.cpp: reaches Kokkos: app/report/html.hpp > Kokkos_Macros.hpp"])

    def test_program_that_links_kokkos(self):
        place = "tests/core/CMakeLists.txt: test_core_base links Kokkos, through"
        self.assertEqual(self.kokkos_with("data/text/CMakeLists.txt", "mylos_folder(data/text PUBLIC mylos::core)\n"),
                         [f"{place} mylos::data_text, mylos_test_main, mylos::core, Kokkos::kokkos"])
        for words in ["OPTIMIZED WITHOUT_KOKKOS SOURCES base/files/test_files.cpp LINK mylos::core",
                      "SOURCES base/files/test_files.cpp # WITHOUT_KOKKOS (as in files)\n LINK mylos::core WITHOUT_KOKKOS"]:
            self.assertEqual(self.kokkos_with("tests/core/CMakeLists.txt", f"mylos_tests(core_base {words})\n"),
                             [f"{place} mylos::core, mylos_test_main, Kokkos::kokkos"])
        helper = "mylos_tests(core_base WITHOUT_KOKKOS SOURCES base/files/test_files.cpp LINK mylos_test_hdf5)\n"
        support = "tests/support/CMakeLists.txt"
        self.write(support, "target_link_libraries(mylos_test_hdf5 PUBLIC Kokkos::kokkos)\n")
        self.assertEqual(self.kokkos_with("tests/core/CMakeLists.txt", helper),
                         [f"{place} mylos_test_hdf5, mylos_test_main, Kokkos::kokkos"])
        self.assertEqual(self.kokkos_with(support, "target_link_libraries(mylos_test_main PUBLIC mylos::core)\n"),
                         [f"{place} mylos::data_text, mylos_test_main, mylos::core_base, mylos::core, Kokkos::kokkos"])

    def test_rule_of_kokkos_that_finds_nothing_to_check(self):
        program = "mylos_tests(core_base OPTIMIZED SOURCES base/files/test_files.cpp LINK mylos::core)\n# mylos_tests(other WITHOUT_KOKKOS)\n"
        self.assertEqual(self.kokkos_with("tests/core/CMakeLists.txt", program), ["tests: no program is WITHOUT_KOKKOS"])
        self.write_tests_without_kokkos()
        (self.root / "tests/app/report/test_html.cpp").unlink()
        self.assertEqual(list(check_tree.check_kokkos(self.root)), ["tests/app/report/test_html.cpp: does not exist"])

    def test_table_of_the_documentation(self):
        def breaches(folders):
            self.write("docs/architecture.md", "".join(f"| `{folder}/` | holds |\n" for folder in folders))
            return list(check_tree.check_table(self.root))
        self.assertEqual(breaches(check_tree.ARROWS), [])
        self.assertEqual(len(breaches([*check_tree.ARROWS, "nn/mamba"])), 1)
        self.assertEqual(len(breaches(check_tree.ARROWS.keys() - {"families/bert"})), 1)

    def test_file_without_a_test(self):
        self.write("data/squad/squad.cpp", "")
        self.write("data/squad/answers.cpp", "")
        self.write("data/squad/features.cpp", "")
        self.write("tests/data/squad/test_squad.cpp", "")
        self.write("tests/data/CMakeLists.txt", "# data/squad/answers, features: test_squad\n")
        self.assertEqual(list(check_tree.check_tests(self.root)), [])
        self.write("tests/data/CMakeLists.txt", "# data/squad/answers: test_other\n")
        self.assertEqual(len(list(check_tree.check_tests(self.root))), 2)

    def test_include_not_relative_to_the_root(self):
        self.write("nn/bert.hpp", "#pragma once\n")
        self.write("nn/bert.cpp", '#include "bert.hpp"\n')
        self.assertEqual(
            list(check_tree.check_includes(self.root)), ['nn/bert.cpp:1: "bert.hpp" is not a file from the root of the tree']
        )

    def test_join_without_the_header_that_newer_fmt_has_it_in(self):
        self.write("nn/bert.cpp", '#include <fmt/format.h>\nauto s = fmt::join(names, ", ");\n')
        self.assertEqual(list(check_tree.check_includes(self.root)), ["nn/bert.cpp: fmt::join needs <fmt/ranges.h>, where it is from fmt 11 on"])
        self.write("nn/bert.cpp", '#include <fmt/ranges.h>\nauto s = fmt::join(names, ", ");\n')
        self.assertEqual(list(check_tree.check_includes(self.root)), [])

    def test_header_without_pragma_once(self):
        self.write("nn/bert.hpp", "int layers();\n")
        self.assertEqual(list(check_tree.check_includes(self.root)), ["nn/bert.hpp: has no #pragma once"])

    def test_vendor_in_the_wrong_file(self):
        self.write("nn/bert.cpp", "int n = omp_get_max_threads();\n")
        self.assertEqual(len(list(check_tree.check_vendors(self.root))), 1)

    def test_vendor_in_its_file_or_a_comment(self):
        self.write("core/device.hpp", "int n = omp_get_max_threads();\n")
        self.write("nn/bert.cpp", "// on CUDA, cudaMalloc would do\n")
        self.assertEqual(list(check_tree.check_vendors(self.root)), [])

    def breaches_of(self, path, line):
        self.write(path, line + "\n")
        breaches = list(check_tree.check_vendors(self.root))
        (self.root / path).unlink()
        return breaches

    def test_cuda_cublas_and_nccl_elsewhere(self):
        for line in [
            "#include <cuda_runtime.h>", "#include <cuda.h>", "cudaStream_t stream = space.cuda_stream();", "Kokkos::Cuda space;",
            "CUresult result = cuCtxGetDevice(&device);", "__global__ void kernel();", "__device__ int value;", "kernel<<<1, 32>>>();",
            "#if defined(KOKKOS_ENABLE_CUDA)", "#include <cublasLt.h>", "cublasLtHandle_t handle;", "auto status = CUBLAS_STATUS_SUCCESS;",
            "#include <cudnn.h>", "cudnnHandle_t handle;", "auto status = CUDNN_STATUS_SUCCESS;", "#include <cudnn_frontend.h>",
            "#include <nccl.h>", "ncclComm_t communicator = nullptr;", "auto type = ncclFloat32;", "int major = NCCL_MAJOR;",
        ]:
            for path in ["nn/bert.cpp", "parallel/launch/launch.cpp", "core/kernels/products/gemm.cpp", "parallel/communicator/nccl/nccl_communicator.hpp"]:
                with self.subTest(line=line, path=path):
                    self.assertEqual(len(self.breaches_of(path, line)), 1)

    def test_cublas_beside_nccl_and_nccl_in_a_kernel(self):
        self.assertEqual(len(self.breaches_of("parallel/communicator/nccl/nccl_operations.cpp", "cublasHandle_t handle;")), 1)
        self.assertEqual(len(self.breaches_of("core/kernels/gpu/gemm_cublaslt.cpp", "ncclComm_t communicator;")), 1)

    def test_cuda_cublas_and_nccl_in_their_files(self):
        for path, line in [
            ("core/device.hpp", "#if defined(KOKKOS_ENABLE_CUDA)"),
            ("core/kernels/gpu/device.cpp", "cudaGetDeviceCount(&count);"),
            ("core/kernels/gpu/gemm_cublaslt.cpp", "cublasLtHandle_t handle;"),
            ("core/kernels/cuda/cudnn_library.hpp", "X(create, cudnnCreate, Status, (Handle**))"),
            ("core/kernels/cuda/gemm_cudnn.cpp", "cudnnHandle_t handle;"),
            ("core/kernels/cuda/cudnn_attention_graph.cpp", "#include <cudnn_frontend.h>\ncudnnHandle_t handle;"),
            ("core/kernels/products/gemm.cpp", "X(cudnn) extern const GemmProviderEntry cudnn_gemm;"),
            ("parallel/communicator/nccl/nccl_communicator.cpp", "ncclUniqueId id;"),
            ("parallel/communicator/nccl/nccl_library.hpp", "#include <nccl.h>"),
            ("parallel/communicator/nccl/nccl_operations.cpp", "cudaEventQuery(event);"),
            # Names of this project.
            ("parallel/launch/launch.cpp", '#include "parallel/communicator/nccl/nccl_communicator.hpp"\nauto ranks = make_nccl_ranks(nccl_obstacle());'),
            ("core/kernels/products/gemm_provider.cpp", 'const char* name = "cublaslt"; mylos::cuda::has_driver();'),
            ("parallel/communicator/nccl/nccl_communicator_absent.cpp", 'fail("this build has no NCCL; -DMYLOS_ENABLE_NCCL=ON");'),
            ("parallel/launch/heartbeat.cpp", 'auto hint = "NCCL_DEBUG=INFO says more";'),
            ("core/base/files/files.cpp", "auto cut = cubic(curve);"),
        ]:
            with self.subTest(path=path):
                self.assertEqual(self.breaches_of(path, line), [])

    def test_cxxopts_outside_its_file(self):
        for line in ["#include <cxxopts.hpp>", "cxxopts::Options options;", "#define CXXOPTS_NO_REGEX true"]:
            with self.subTest(line):
                self.assertEqual(len(self.breaches_of("app/options/parse.cpp", line)), 1)
                self.assertEqual(self.breaches_of("app/options/words.cpp", line), [])

    def test_json_parsed_without_the_depth_limit(self):
        for line in [
            "const json row = json::parse(line, nullptr, false);",
            "const auto run = nlohmann::ordered_json::parse(text);",
            "const Json value = Json::parse (text);",
            "return OrderedJson::accept(text);",
        ]:
            with self.subTest(line):
                self.assertEqual(len(self.breaches_of("train/engine/metrics.cpp", line)), 1)
                self.assertEqual(self.breaches_of("core/base/files/json.cpp", line), [])
        self.assertEqual(self.breaches_of("train/engine/metrics.cpp", "const json row = data::try_parse_json(line);"), [])

    def test_file_too_long(self):
        self.write("nn/bert.cpp", "\n" * 501)
        self.write("nn/loss.cpp", "\n" * 500)
        self.assertEqual(list(check_tree.check_lengths(self.root)), ["nn/bert.cpp: 501 lines; split it (500 is the most)"])

    def test_recorded_values_that_are_too_large(self):
        self.write("tests/golden/a/values.bin", " " * (8 << 20))
        self.assertEqual(list(check_tree.check_recorded(self.root)), [])
        self.write("tests/golden/b.json", "{}")
        self.assertEqual(len(list(check_tree.check_recorded(self.root))), 1)

    def test_limits_that_a_slow_machine_exceeds(self):
        for path, text in [("tests/app/CMakeLists.txt", "set_tests_properties(a PROPERTIES\n  TIMEOUT\n  300)"),
                           ("tests/jobs/test_a.py", "subprocess.run(words, timeout=60)"),
                           ("tests/app/test_a.cpp", "const auto end = Clock::now() + std::chrono::seconds(30);")]:
            with self.subTest(path):
                self.write(path, text)
                self.assertEqual(len(list(check_tree.check_limits(self.root))), 1)
                self.write(path, text.replace("300", "3600").replace("60)", "HANG_LIMIT)").replace("30)", "limit)"))
                self.assertEqual(list(check_tree.check_limits(self.root)), [])

    def test_pip_that_may_run_downloaded_code(self):
        for good in [
            'python3 -I -m pip install --only-binary=:all: --target x y\n',
            '"$1/bin/python" -I -m pip download --quiet \\\n  --require-hashes -r z\n',
        ]:
            self.write("scripts/get", good)
            self.assertEqual(list(check_tree.check_pip(self.root)), [])
        for bad in [
            "python3 -m pip install --only-binary=:all: y\n",
            "python3 -I -m pip install y\n",
            '"$1/venv/bin/pip" download --require-hashes -r z\n',
        ]:
            with self.subTest(bad):
                self.write("scripts/get", bad)
                self.assertEqual(len(list(check_tree.check_pip(self.root))), 1)
        self.write("scripts/get", "")
        for good in ['command = [python, "-I", "-m", "pip", "install",\n           "--only-binary=:all:", *words]\n']:
            self.write("lab/peers.py", good)
            self.assertEqual(list(check_tree.check_pip(self.root)), [])
        for bad in ['command = [python, "-m", "pip", "install", "--only-binary=:all:", *words]\n',
                    'command = [python, "-I", "-m", "pip",\n           "download", *words]\n']:
            with self.subTest(bad):
                self.write("lab/peers.py", bad)
                self.assertEqual(len(list(check_tree.check_pip(self.root))), 1)

    def test_nothing_but_comments_names_the_laboratory(self):
        self.write("nn/bert.cpp", "// measured by lab/compare\nint syllab/2;\n")
        self.write("scripts/get", '# as lab/peers does\n')
        self.write("tests/docs/elsewhere.py", 'ROWS = ["^lab/"]\n')
        self.write("tests/support/read.py", '"""Values of lab/record."""\n')
        self.assertEqual(list(check_tree.check_lab(self.root)), [])
        self.write("nn/bert.cpp", 'read("lab/results/h200.json");')
        self.write("scripts/get", 'python3 "$root/lab/compare"')
        self.assertEqual([line.split(";")[0] for line in check_tree.check_lab(self.root)],
                         ["nn/bert.cpp: names lab/results", "scripts/get: names lab/compare"])

    def test_source_missing_from_every_cmake_list(self):
        self.write("nn/CMakeLists.txt", "mylos_folder(nn SOURCES bert.cpp)")
        self.write("nn/bert.cpp", "")
        self.write("nn/loss.cpp", "")
        self.assertEqual(list(check_tree.check_sources(self.root)), ["nn/loss.cpp: no CMakeLists.txt lists it"])

    def test_text_in_a_compile_definition(self):
        self.write("app/CMakeLists.txt", 'target_compile_definitions(mylos PRIVATE "MPI=\\"standard ${VERSION}\\"")')
        self.write("core/CMakeLists.txt", 'target_compile_definitions(mylos PRIVATE "LEVEL=${LEVEL}")')
        self.write("tests/app/CMakeLists.txt", 'target_compile_definitions(test PRIVATE "FILE=\\"${FILE}\\"")')
        self.assertEqual(list(check_tree.check_definitions(self.root)),
                         ["app/CMakeLists.txt:1: a compile definition has a text; write it into a header with configure_file"])


if __name__ == "__main__":
    unittest.main()
