"""configure.py ROOT SCRATCH VARIANTS [NAME=VALUE...]: configures the tree with exactly the flags that the recipe passes.

VARIANTS are written as in Spack: "+openmp~mpi" or "+cuda cuda_arch=80". NAME=VALUE are CMake variables of this machine (compilers),
which Spack would take from its environment. The exit code is 77 (skipped) if nvcc or the Kokkos of the variants is missing.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import recipe


def chosen_variants(text):
    chosen = {name: sign == "+" for sign, name in re.findall(r"([+~])(\w+)", text)}
    chosen.update(re.findall(r"(\w+)=(\w+)", text))
    return chosen


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


def kokkos_without_threads(root):
    """Skips the test if there is no Kokkos without OpenMP. A build with OpenMP does not need it."""
    where = subprocess.run([root / "scripts/kokkos", "--where", "--serial"], capture_output=True, check=False)
    if where.returncode != 0 and "Kokkos_ROOT" not in os.environ:
        skip("no Kokkos without OpenMP: scripts/kokkos --serial builds it")


def kokkos_for_gpus(root, architecture):
    """Returns the prefix of scripts/kokkos, whose bin/nvcc_wrapper replaces Spack's package of that name."""
    if not shutil.which("nvcc"):
        skip("no CUDA toolkit: nvcc is not on the path")
    where = subprocess.run([root / "scripts/kokkos", "--where", "--cuda", architecture], capture_output=True, text=True, check=False)
    wrapper = pathlib.Path(where.stdout.strip()) / "bin/nvcc_wrapper"
    if where.returncode != 0 or not wrapper.is_file():
        skip(f"no Kokkos for GPUs: scripts/kokkos --cuda {architecture} builds it")
    return wrapper


def cache(scratch):
    return dict(re.findall(r"^(\w+):\w+=(.*)$", (scratch / "CMakeCache.txt").read_text(encoding="utf-8"), re.MULTILINE))


def main():
    root, scratch, variants = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), chosen_variants(sys.argv[3])
    compiler = kokkos_for_gpus(root, variants["cuda_arch"]) if variants.get("cuda") else None
    if variants.get("openmp") is False:
        kokkos_without_threads(root)
    flags = recipe.cmake_arguments(*recipe.load(root), variants, compiler)
    # Spack passes its own Kokkos in CMAKE_PREFIX_PATH.
    local = [f"-D{name}_ROOT={compiler.parents[1]}" for name in ("Kokkos", "KokkosKernels")] if compiler else ["-D" + word for word in sys.argv[4:]]
    shutil.rmtree(scratch, ignore_errors=True)
    command = ["cmake", "-S", root, "-B", scratch, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *local, *flags]
    print(json.dumps([str(word) for word in command]))
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(result.stdout)
    if result.returncode != 0:
        sys.exit("the configuration failed")
    if "Manually-specified variables were not used" in result.stdout:
        sys.exit("a flag of the recipe is no option of the build")
    # The build has the requested features, whatever the defaults are.
    got = cache(scratch)
    for name, value in re.findall(r"-D(MYLOS_\w+):\w+=(\S+)", " ".join(flags)):
        if got.get(name) != value:
            sys.exit(f"{name} is {got.get(name)}, and the recipe passed {value}")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
