"""Copies Open MPI 4 into a bundle, for ranks on one machine that has no MPI.

open_mpi.py FOLDER     writes FOLDER/openmpi (mpirun, components, help texts), and the libraries that they need into FOLDER/lib
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

# Components for networks, profilers and OpenSHMEM: ranks of one machine do not use them, and they need large libraries.
LEFT_OUT = r"mca_(\w+_(ucx|ofi|openib|psm2?|monitoring)|(atomic|memheap|scoll|spml|sshmem)_\w+)\.so"
# Libraries that belong to the C library and the driver of the other machine.
OF_THE_SYSTEM = r"(libc|libm|libdl|libpthread|librt|libresolv|libutil|libcuda)\.so.*|ld-linux.*|linux-vdso.*"


def paths():
    """Returns {name: folder} of the installed Open MPI. Errors: SystemExit, with one line."""
    program = shutil.which("ompi_info")
    if program is None:
        sys.exit("open_mpi.py: ompi_info is not on the path; install Open MPI 4 (Debian: openmpi-bin)")
    done = subprocess.run([program, "--parsable", "--path", "all"], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^path:(\w+):(.+)$", done.stdout, re.MULTILINE))
    if not pathlib.Path(found["bindir"], "orterun").exists():
        sys.exit("open_mpi.py: there is no orterun beside ompi_info: Open MPI 4 is needed")
    return {name: pathlib.Path(folder) for name, folder in found.items()}


def needed_libraries(files):
    """Returns {name: path} of the libraries that the files need, directly or not. Errors: SystemExit if one is missing."""
    done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False)
    needed = {}
    for name, path in re.findall(r"^\s+(\S+) => (not found|/\S+)", done.stdout, re.MULTILINE):
        if re.fullmatch(OF_THE_SYSTEM, name):
            continue
        if path == "not found":
            sys.exit(f"open_mpi.py: {name} is not found, which Open MPI needs")
        needed[name] = pathlib.Path(path)
    return needed


def stripped(file, target):
    """Copies a program or library without symbols, or as it is if there is no strip."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which("strip") is None or subprocess.run(["strip", "-o", target, file], capture_output=True, check=False).returncode != 0:
        shutil.copy(file, target)


def copy_open_mpi(folder):
    installed = paths()
    copied = {installed["bindir"] / "orterun": folder / "openmpi/bin/mpirun"}
    for component in sorted(installed["pkglibdir"].glob("mca_*.so")):
        if not re.fullmatch(LEFT_OUT, component.name):
            copied[component] = folder / "openmpi/components" / component.name
    libraries = needed_libraries(copied)
    pmix = next((path for name, path in libraries.items() if name.startswith("libpmix.so")), None)
    if pmix is not None:
        for component in sorted((pmix.resolve().parent / "pmix").glob("*.so")):
            copied[component] = folder / "openmpi/pmix" / component.name
        libraries |= needed_libraries(copied)
    for file, target in copied.items():
        stripped(file, target)
    for name, path in libraries.items():
        if name in ("libstdc++.so.6", "libgcc_s.so.1"):
            stripped(path, folder / "lib/gcc" / name)
        elif not (folder / "lib" / name).exists():
            stripped(path, folder / "lib" / name)
    (folder / "openmpi/help").mkdir(parents=True, exist_ok=True)
    for text in installed["pkgdatadir"].glob("help-*.txt"):
        shutil.copy(text, folder / "openmpi/help")
    os.chmod(folder / "openmpi/bin/mpirun", 0o755)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: open_mpi.py FOLDER")
    copy_open_mpi(pathlib.Path(sys.argv[1]))
