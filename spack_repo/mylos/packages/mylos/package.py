# SPDX-License-Identifier: Apache-2.0

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class Mylos(CMakePackage, CudaPackage, ROCmPackage):
    """A training engine for transformers in C++20 on Kokkos: fine-tunes BERT on question
    answering, on CPUs or GPUs, in one process or on many ranks of MPI."""

    # The tree that contains this recipe. Environments build it in place (their develop
    # section). Without an environment, Spack clones its branch main.
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("Apache-2.0")

    version("develop", branch="main")

    # The architectures that have been compiled for: V100, A100, H100 and H200.
    architectures = ("70", "80", "90")
    # MI250X; MI300A and MI300X. No such GPU has run it.
    rocm_architectures = ("90a", "942")

    variant(
        "openmp", default=True, description="Threads on the host through Kokkos' OpenMP backend"
    )
    variant("mpi", default=True, description="Several ranks through MPI")
    variant(
        "onednn",
        default=True,
        when="~cuda ~rocm",
        description="oneDNN as a provider of matrix products on the host",
    )
    for gpus in ("+cuda", "+rocm"):
        variant(
            "nccl",
            default=True,
            when=f"{gpus} +mpi",
            description="Device arrays of several ranks through NCCL, with ROCm through RCCL",
        )
    for arch in ("80", "90"):
        variant(
            "cudnn",
            default=True,
            when=f"+cuda cuda_arch={arch}",
            description="cuDNN, which is loaded at run time, for convolutions and attention",
        )
    variant(
        "tests", default=False, description="Build the tests and the benchmarks beside the program"
    )
    # CudaPackage's variant takes several values. All values stay, because CudaPackage has
    # dependencies for each of them.
    variant(
        "cuda_arch",
        default="none",
        values=("none",) + CudaPackage.cuda_arch_values,
        multi=False,
        sticky=True,
        when="+cuda",
        description="Compute capability of the GPUs: 70 (V100), 80 (A100) or 90 (H100, H200)",
    )
    for arch in ("none",) + CudaPackage.cuda_arch_values:
        if arch not in architectures:
            conflicts(
                "+cuda",
                when=f"cuda_arch={arch}",
                msg="+cuda wants cuda_arch=70 (V100), 80 (A100) or 90 (H100)",
            )

    # Likewise.
    variant(
        "amdgpu_target",
        default="none",
        values=("none",) + ROCmPackage.amdgpu_targets,
        multi=False,
        sticky=True,
        when="+rocm",
        description="Architecture of the GPUs: gfx90a (MI250X) or gfx942 (MI300A, MI300X)",
    )
    for target in ("none",) + ROCmPackage.amdgpu_targets:
        if target[3:] not in rocm_architectures:
            conflicts(
                "+rocm",
                when=f"amdgpu_target={target}",
                msg="+rocm wants amdgpu_target=gfx90a (MI250X) or gfx942 (MI300A, MI300X)",
            )
    conflicts("+cuda", when="+rocm", msg="a build computes on GPUs of one vendor")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.8:", type="build", when="+tests")
    depends_on("googletest@1.12: +gmock", type=("build", "link"), when="+tests")

    conflicts("%gcc@:10", msg="C++20 as it is used here wants GCC 11 or later")
    conflicts("%clang@:13", msg="C++20 as it is used here wants Clang 14 or later")

    depends_on("kokkos@4.6: +serial cxxstd=20")
    depends_on("kokkos-kernels@4.6: +serial +blas +lapack scalars=float,double")
    for state in ("+", "~"):
        depends_on(f"kokkos{state}openmp", when=f"{state}openmp")
        depends_on(f"kokkos-kernels{state}openmp", when=f"{state}openmp")
    # Kokkos Kernels calls it. Conditions on a provider see only direct dependencies.
    depends_on("blas")
    depends_on("openblas threads=openmp", when="+openmp ^[virtuals=blas] openblas")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("utf8proc@2.6:")
    depends_on("pcre2@10.40: +jit")
    depends_on("cxxopts@3:", type="build")
    depends_on("sentencepiece@0.1.97:")
    depends_on("libjpeg-turbo@2:")
    depends_on("libpng@1.6:")
    depends_on("zlib-api")
    depends_on("onednn@2.6:2 cpu_runtime=omp", when="+onednn +openmp")
    depends_on("onednn@2.6:2 cpu_runtime=seq", when="+onednn ~openmp")
    depends_on("mpi@3:", when="+mpi")
    # +mpi is HDF5's default, so builds without it must ask for ~mpi.
    depends_on("hdf5@1.10.8: ~cxx +mpi", when="+mpi")
    depends_on("hdf5@1.10.8: ~cxx ~mpi", when="~mpi")

    with when("+cuda"):
        depends_on("cuda@12:")
        # Attention is compiled with its headers and those of cudnn-frontend; nothing is linked
        # with it. A dependency of type link puts its folder into the RPATH of the program, which
        # loads the library from there.
        depends_on("cudnn@9:9", when="+cudnn")
        resource(
            name="cudnn-frontend",
            git="https://github.com/NVIDIA/cudnn-frontend.git",
            tag="v1.23.0",
            commit="fb682ce761a2705e40f9b5d528737a3e0eb33cec",
            placement="cudnn-frontend",
            when="+cudnn",
        )
        # With GCC and neither +wrapper nor +cmake_lang, Kokkos concretizes but does not
        # build.
        depends_on("kokkos+cuda+wrapper", when="%cxx=gcc")
        depends_on("kokkos+cuda")
        depends_on("kokkos-kernels+cuda+cublas+cusparse")
    with when("+rocm"):
        # For earlier ones Spack builds Kokkos with hipMallocAsync, whose memory GPUs cannot share.
        depends_on("hip@7:")
        depends_on("hipblaslt")  # loaded at run time; a dependency puts its folder into the RPATH
        depends_on("rccl", when="+nccl")
        depends_on("kokkos+rocm")
        depends_on("kokkos-kernels+rocm")
    for arch in rocm_architectures:
        for package in ("kokkos", "kokkos-kernels"):
            target = f"amdgpu_target=gfx{arch}"
            depends_on(f"{package} {target}", when=f"+rocm {target}")
    for arch in architectures:
        depends_on(f"kokkos cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
        depends_on(f"kokkos-kernels cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
        depends_on(f"nccl+cuda cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")

    def cmake_args(self):
        args = [
            self.define_from_variant("MYLOS_ENABLE_OPENMP", "openmp"),
            self.define_from_variant("MYLOS_ENABLE_MPI", "mpi"),
            self.define_from_variant("MYLOS_ENABLE_CUDA", "cuda"),
            self.define_from_variant("MYLOS_ENABLE_HIP", "rocm"),
            # A variant that does not exist (when=) gives no flag, and the default of the CMake
            # option is not always off.
            self.define("MYLOS_ENABLE_ONEDNN", self.spec.satisfies("+onednn")),
            self.define("MYLOS_ENABLE_NCCL", self.spec.satisfies("+nccl")),
            self.define("MYLOS_ENABLE_CUDNN", self.spec.satisfies("+cudnn")),
            self.define_from_variant("MYLOS_ENABLE_TESTS", "tests"),
            self.define_from_variant("MYLOS_ENABLE_BENCH", "tests"),
            # Spack's compiler wrapper sets the target.
            self.define("MYLOS_ENABLE_NATIVE", False),
            # As in the presets: headers take most of the compile time.
            self.define("CMAKE_UNITY_BUILD", True),
            self.define("CMAKE_UNITY_BUILD_BATCH_SIZE", "24"),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define_from_variant("MYLOS_CUDA_ARCHITECTURE", "cuda_arch"))
        for arch in self.rocm_architectures:
            if self.spec.satisfies(f"+rocm amdgpu_target=gfx{arch}"):
                args.append(self.define("MYLOS_HIP_ARCHITECTURE", arch))
                args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
        if self.spec.satisfies("+cudnn"):
            args.append(self.define("CUDNN_INCLUDE_DIR", self.spec["cudnn"].prefix.include))
            frontend = join_path(self.stage.source_path, "cudnn-frontend", "include")
            args.append(self.define("CUDNN_FRONTEND_INCLUDE_DIR", frontend))
        if self.spec.satisfies("^kokkos+wrapper"):
            args.append(self.define("CMAKE_CXX_COMPILER", self["kokkos-nvcc-wrapper"].kokkos_cxx))
        return args

    def run_installed(self, *words):
        """Returns the output of the installed program."""
        return Executable(self.prefix.bin.mylos)(*words, output=str.split, error=str.split)

    def test_info(self):
        """the program says what it was built with"""
        assert "version" in self.run_installed("info")

    def test_train(self):
        """trains the installed tiny model for four steps on the example questions, and asks it"""
        if self.spec.satisfies("+cuda") or self.spec.satisfies("+rocm"):
            raise SkipTest("a machine that runs package tests need not have a GPU")
        examples = join_path(self.prefix.share.mylos, "examples")
        windows = ("--max-length", "128", "--doc-stride", "32")
        output = self.run_installed(
            *("train", "--model", join_path(examples, "tiny-bert")),
            *("--train", join_path(examples, "squad", "train.json"), "--train-limit", "32"),
            *("--dev", join_path(examples, "squad", "dev.json"), "--dev-limit", "8"),
            *(
                "--output",
                "run",
                "--overwrite",
                "--steps",
                "4",
                "--batch",
                "8",
                "--learning-rate",
                "1e-3",
            ),
            *windows,
        )
        assert "done after 4 steps" in output
        asked = (
            "ask",
            "--model",
            "run",
            "--context",
            join_path(examples, "windmills.txt"),
            "Who patented the fantail?",
        )
        assert "score" in self.run_installed(*asked, "--doc-stride", "32")
