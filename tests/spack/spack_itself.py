"""spack_itself.py ROOT STEP: checks the recipe with Spack. STEP: audit, style, concretize or install.

MYLOS_SPACK names a checkout of Spack 1.x that knows its package repository. Without it the step is skipped (exit code 77). The step
install builds all dependencies, so it runs only if MYLOS_SPACK_INSTALL is set as well.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

# A spec, and texts that its concretized form contains.
ACCEPTED = {
    "mylos ~cuda +openmp +mpi": ["kokkos@", "hdf5@", "openmpi@", "threads=openmp"],
    "mylos +cuda cuda_arch=70 +nccl +mpi +openmp": ["cuda@12", "kokkos-nvcc-wrapper@", "nccl@"],
    "mylos +cuda cuda_arch=80 +nccl +mpi +openmp": ["cuda@", "kokkos-nvcc-wrapper@", "nccl@", "cuda_arch=80"],
    "mylos +cuda cuda_arch=90 +nccl +mpi +openmp": ["cuda@", "kokkos-nvcc-wrapper@", "nccl@", "cuda_arch=90"],
    "mylos ~openmp ~mpi": ["~openmp"],
    "mylos ^kokkos@4.7.01": ["kokkos@4.7.01"],
}
REFUSED = ["mylos +cuda", "mylos +nccl ~cuda", "mylos +cuda cuda_arch=86", "mylos +cuda cuda_arch=80,90"]


def skip(reason):
    print("SKIPPED:", reason)
    sys.exit(77)


class Spack:
    """Spack's checkout, configured for this run with the package repository of the tree beside its own."""

    def __init__(self, checkout, root, scope):
        self.program = checkout / "bin/spack"
        if not self.program.is_file():
            skip(f"MYLOS_SPACK is {checkout}, which has no bin/spack")
        self.root, self.scope = root, scope
        (scope / "repos.yaml").write_text(f"repos:\n  mylos: {root / 'spack_repo/mylos'}\n", encoding="utf-8")

    def __call__(self, *words):
        command = [self.program, "-C", self.scope, *words]
        print("$", *command, flush=True)
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def passes(self, *words):
        result = self(*words)
        if result.returncode != 0:
            sys.exit(result.stdout)
        return result.stdout


def audit(spack):
    print(spack.passes("audit", "packages", "mylos"))


def style(spack):
    """Checks the style of the recipe alone. Spack takes black, flake8 and isort from its environment, or bootstraps them."""
    print(spack.passes("style", "--root", str(spack.root), str(spack.root / "spack_repo/mylos/packages/mylos/package.py")))


def concretize(spack):
    for spec, texts in ACCEPTED.items():
        output = spack.passes("spec", spec)
        missing = [text for text in texts if text not in output]
        if missing:
            sys.exit(f"{output}\n{spec} lacks {missing}")
    for spec in REFUSED:
        result = spack("spec", spec)
        if result.returncode == 0:
            sys.exit(f"{result.stdout}\n{spec} should be refused")
    for environment in [spack.root, *sorted((spack.root / "spack").iterdir())]:
        # Uses a copy, because concretizing writes spack.lock beside spack.yaml.
        with tempfile.TemporaryDirectory() as scratch:
            text = (environment / "spack.yaml").read_text(encoding="utf-8")
            for line in text.splitlines():
                key, _, value = line.strip().partition(": ")
                if key in ("path", "mylos") and value:
                    text = text.replace(f"{key}: {value}", f"{key}: {(environment / value).resolve()}")
            (pathlib.Path(scratch) / "spack.yaml").write_text(text, encoding="utf-8")
            spack.passes("-e", scratch, "concretize")


def install(spack):
    if not os.environ.get("MYLOS_SPACK_INSTALL"):
        skip("building every dependency takes hours: set MYLOS_SPACK_INSTALL=1")
    spack.passes("dev-build", "--source-path", str(spack.root), "mylos@develop")
    print(spack.passes("test", "run", "mylos"))


def main():
    checkout = os.environ.get("MYLOS_SPACK")
    if not checkout:
        skip("MYLOS_SPACK names no checkout of Spack")
    steps = {"audit": audit, "style": style, "concretize": concretize, "install": install}
    with tempfile.TemporaryDirectory() as scope:
        steps[sys.argv[2]](Spack(pathlib.Path(checkout), pathlib.Path(sys.argv[1]), pathlib.Path(scope)))


if __name__ == "__main__":
    main()
