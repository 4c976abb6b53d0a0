"""test_recipe.py ROOT: tests the declarations of the recipe, read without Spack."""

import json
import pathlib
import re
import sys
import unittest

import recipe

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
# Options without a variant, with the reason.
UNNAMED = {"SANITIZERS": "for tests of the tree", "FUZZ": "for tests of the tree", "DEVICE_KERNELS": "for tests of the tree"}


class Recipe(unittest.TestCase):
    def setUp(self):
        self.recipe, self.directives = recipe.load(ROOT)

    def arguments(self, **chosen):
        compiler = "nvcc_wrapper" if chosen.get("cuda") else None
        return recipe.cmake_arguments(self.recipe, self.directives, chosen, compiler)

    def test_passes_every_option_of_the_build(self):
        options = set(re.findall(r"^option\(MYLOS_ENABLE_(\w+)", (ROOT / "cmake/MylosOptions.cmake").read_text(), re.MULTILINE))
        passed = set(re.findall(r"-DMYLOS_ENABLE_(\w+):", " ".join(self.arguments())))
        self.assertEqual(passed, options - UNNAMED.keys())

    def test_defaults_build_for_the_cpu(self):
        flags = self.arguments()
        for flag in ("OPENMP:BOOL=ON", "MPI:BOOL=ON", "ONEDNN:BOOL=ON", "CUDA:BOOL=OFF", "NCCL:BOOL=OFF", "TESTS:BOOL=OFF", "NATIVE:BOOL=OFF"):
            self.assertIn("-DMYLOS_ENABLE_" + flag, flags)
        self.assertFalse([flag for flag in flags if "ARCHITECTURE" in flag or "COMPILER" in flag])

    def test_builds_several_files_at_once_as_the_presets_do(self):
        preset = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        sizes = {size for size in (entry.get("cacheVariables", {}).get("CMAKE_UNITY_BUILD_BATCH_SIZE") for entry in preset) if size}
        self.assertEqual(sizes, {flag.partition("=")[2] for flag in self.arguments() if "UNITY_BUILD_BATCH_SIZE" in flag})

    def test_gpu_builds_have_nccl_and_from_8_0_on_cudnn(self):
        for architecture, cudnn in (("70", "OFF"), ("80", "ON"), ("90", "ON")):
            flags = self.arguments(cuda=True, cuda_arch=architecture)
            for flag in ("-DMYLOS_ENABLE_CUDA:BOOL=ON", f"-DMYLOS_CUDA_ARCHITECTURE:STRING={architecture}", "-DMYLOS_ENABLE_NCCL:BOOL=ON",
                         f"-DMYLOS_ENABLE_CUDNN:BOOL={cudnn}", "-DMYLOS_ENABLE_ONEDNN:BOOL=OFF", "-DCMAKE_CXX_COMPILER:STRING=nvcc_wrapper"):
                self.assertIn(flag, flags)
        self.assertIn("-DMYLOS_ENABLE_NCCL:BOOL=OFF", self.arguments(cuda=True, cuda_arch="80", nccl=False))

    def test_leaves_the_mpi_library_to_the_site(self):
        self.assertEqual([spec for spec, _, _ in self.directives.dependencies if "mpi" in spec.split("@")[0]], ["mpi@3:"])

    def test_cudnn_brings_its_headers_and_those_of_its_frontend(self):
        dependencies = {(spec, when) for spec, when, _ in self.directives.dependencies}
        self.assertIn(("cudnn@9:9", "+cuda +cudnn"), {(spec, " ".join(sorted(when.split()))) for spec, when in dependencies})
        source, when = self.directives.resources["cudnn-frontend"]
        self.assertEqual(sorted(when.split()), ["+cuda", "+cudnn"])
        self.assertRegex(source["commit"], "^[0-9a-f]{40}$")
        flags = self.arguments(cuda=True, cuda_arch="80")
        for flag in ("MYLOS_ENABLE_CUDNN:BOOL=ON", "CUDNN_INCLUDE_DIR:STRING=/cudnn/include",
                     f"CUDNN_FRONTEND_INCLUDE_DIR:STRING=/source/{source['placement']}/include"):
            self.assertIn("-D" + flag, flags)
        without = [flag for flag in self.arguments(cuda=True, cuda_arch="80", cudnn=False) if "CUDNN" in flag]
        self.assertEqual(without, ["-DMYLOS_ENABLE_CUDNN:BOOL=OFF"])

    def test_the_build_has_the_same_frontend(self):
        """The recipe's release of cudnn-frontend is the one that scripts/cudnn-headers fetches."""
        source, _ = self.directives.resources["cudnn-frontend"]
        script = (ROOT / "scripts/cudnn-headers").read_text(encoding="utf-8")
        self.assertIn(f'"nvidia-cudnn-frontend=={source["tag"][1:]} ', script)

    def test_nccl_needs_mpi(self):
        self.assertIn("-DMYLOS_ENABLE_NCCL:BOOL=OFF", self.arguments(cuda=True, cuda_arch="80", mpi=False))

    def test_rejects_unsupported_architectures(self):
        refused = {when.split("=")[1] for spec, when, _ in self.directives.conflicts if spec == "+cuda" and "=" in when}
        self.assertEqual(refused, {"none", *recipe.ARCHITECTURES} - {"70", "80", "90"})
        self.assertEqual(self.directives.variants["cuda_arch"].values, ("none", *recipe.ARCHITECTURES))

        refused = {when.split("=")[1] for spec, when, _ in self.directives.conflicts if spec == "+rocm"}
        self.assertEqual(refused, {"none", *recipe.TARGETS} - {"gfx90a", "gfx942"})

    def test_builds_for_gpus_of_amd(self):
        flags = self.arguments(rocm=True, amdgpu_target="gfx942")
        for flag in ("-DMYLOS_ENABLE_HIP:BOOL=ON", "-DMYLOS_HIP_ARCHITECTURE:STRING=942", "-DMYLOS_ENABLE_NCCL:BOOL=ON",
                     "-DMYLOS_ENABLE_CUDA:BOOL=OFF", "-DMYLOS_ENABLE_ONEDNN:BOOL=OFF", "-DCMAKE_CXX_COMPILER:STRING=/hip/bin/hipcc"):
            self.assertIn(flag, flags)
        self.assertIn(("kokkos-kernels amdgpu_target=gfx942", "+rocm amdgpu_target=gfx942", None), self.directives.dependencies)
        self.assertIn(("+cuda", "+rocm", "a build computes on GPUs of one vendor"), self.directives.conflicts)

    def test_libraries_of_the_build_are_dependencies(self):
        names = {re.match(r"[\w-]+", spec).group() for spec, _, _ in self.directives.dependencies}
        found = {"c", "cxx", "cmake", "pkgconfig", "kokkos", "kokkos-kernels", "fmt", "nlohmann-json", "utf8proc", "cxxopts", "onednn", "mpi", "hdf5", "cuda", "nccl", "googletest"}
        found |= {"sentencepiece", "pcre2", "libjpeg-turbo", "libpng", "zlib-api"}
        self.assertLessEqual(found, names)

    def test_environments(self):
        """Each environment names the tree, the folder of the recipe and existing variants, by valid paths."""
        for path in [ROOT / "spack.yaml", *sorted(ROOT.glob("spack/*/spack.yaml"))]:
            text = path.read_text(encoding="utf-8")
            specs = re.search(r"- mylos@develop (.*)", text).group(1)
            for name in re.findall(r"[+~](\w+)|(\w+)=", specs):
                self.assertIn(name[0] or name[1], self.directives.variants, path)
            self.assertTrue((path.parent / re.search(r"mylos: (\S+)", text).group(1) / "repo.yaml").is_file(), path)
            self.assertEqual((path.parent / re.search(r"path: (\S+)", text).group(1)).resolve(), ROOT.resolve())
        self.assertEqual(len(list(ROOT.glob("spack/*/spack.yaml"))), 3)

    def test_lines_fit_the_limit_of_spack(self):
        lines = (ROOT / recipe.RECIPE).read_text(encoding="utf-8").splitlines()
        self.assertEqual([line for line in lines if len(line) > 99], [])

    def test_recipe_has_smoke_tests(self):
        self.assertTrue({"test_info", "test_train"} <= set(vars(self.recipe)))


if __name__ == "__main__":
    unittest.main()
