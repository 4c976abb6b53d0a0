"""Describes the machine that runs the bundle: its GPU and its CUDA libraries."""

import json
import os
import pathlib
import platform
import re
import shutil
import sys

from validation.bundle import Refused
from validation.commands import run

QUERY = "name,driver_version,memory.total,compute_cap,uuid"


def nvidia_smi():
    """Returns the path of nvidia-smi, also in containers that mount the driver outside the path."""
    return shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/bin:/usr/local/nvidia/bin")


def gpu_count():
    """Returns the number of GPUs that programs can use."""
    program = nvidia_smi()
    count = len(run([program, "-L"], 30).output.splitlines()) if program else 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len(list(filter(None, visible.split(",")))))


def gpu():
    """Returns the GPU that programs use: the first visible one in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID. Errors: Refused."""
    program = nvidia_smi()
    if program is None:
        raise Refused("no GPU: nvidia-smi is not on the path; run this where an NVIDIA driver is installed, or give --dry-run")
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    which = ["-i", first] if first and not first.startswith("MIG-") else []
    done = run([program, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", *which], 30)
    fields = [field.strip() for field in (done.output.strip().splitlines() or [""])[0].split(",")]
    if done.code != 0 or len(fields) != len(QUERY.split(",")) or not re.fullmatch(r"\d+\.\d+", fields[3]):
        said = (done.output + done.errors).strip()
        raise Refused(f"no GPU: nvidia-smi says: {said.splitlines()[0] if said else done.reason()}")
    name, driver, memory, capability, uuid = fields
    return {"name": name, "driver": driver, "memory_mib": memory, "compute_capability": capability, "uuid": uuid}


def capability_of(found):
    """Returns the compute capability of a GPU: 90 for 9.0."""
    return int(found["compute_capability"].replace(".", ""))


def check_architecture(found, built):
    """Checks that the GPU supports the build. `built`: its architecture, 90 for 9.0. For later GPUs the driver compiles the code."""
    capability = capability_of(found)
    if capability < built:
        raise Refused(f"the bundle is built for compute capability {built / 10:.1f}, and this {found['name']} has {capability / 10:.1f}; "
                      f"make one with lab/bundle-gpu --arch {max((known for known in (70, 80, 90) if known <= capability), default=70)}")


def python_folders():
    """Returns the folders in which packages of this Python keep CUDA's libraries."""
    for folder in sys.path:
        for library in sorted(pathlib.Path(folder or ".").glob("nvidia/*/lib")):
            yield library


def library_folders():
    """Returns folders that may hold CUDA's libraries, the most likely first."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield pathlib.Path(folder)
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        if os.environ.get(variable):
            yield pathlib.Path(os.environ[variable]) / "lib64"
    compiler = shutil.which("nvcc")
    if compiler:
        yield pathlib.Path(compiler).resolve().parent.parent / "lib64"
        yield pathlib.Path(compiler).resolve().parent.parent / "lib"
    for folder in sorted(pathlib.Path("/usr/local").glob("cuda*/lib64"), reverse=True):
        yield folder
    yield from python_folders()
    yield from map(pathlib.Path, ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"))


def folder_of(library, folders=None):
    """Returns the first folder that has a library, or None, and the folders that were searched."""
    searched = list(dict.fromkeys(library_folders() if folders is None else folders))
    return next((folder for folder in searched if (folder / library).exists()), None), searched


def cublas_folder(major, folders=None):
    """Returns the folder of cuBLASLt of CUDA `major`. Errors: Refused."""
    wanted = f"libcublasLt.so.{major}"
    found, searched = folder_of(wanted, folders)
    if found is None:
        raise Refused(f"{wanted} is not found (looked in {', '.join(map(str, searched)) or 'no folder'}); install the CUDA {major} toolkit or "
                      f"the Python package nvidia-cublas, or name its folder in LD_LIBRARY_PATH")
    return found


# Libraries that the programs load when they use them; the tests of those that a machine lacks are skipped.
LOADED_IF_USED = ["libnccl.so.2", "libcudnn.so.9"]


def gpu_folders(major):
    """Returns the folders of CUDA's libraries on this machine. Errors: Refused if cuBLASLt is missing."""
    return [cublas_folder(major), *filter(None, (folder_of(library)[0] for library in LOADED_IF_USED))]


# All ranks are on this machine, which may have fewer cores than ranks, no ssh, and a user who is root. Open MPI's other components for
# messages between processes need devices or privileges that it may lack.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_plm": "isolated", "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def open_mpi_names(folder):
    """Returns the variables that replace the paths which Open MPI and PMIx were built with. `folder`: see lab/bundle-gpu."""
    return {"OPAL_PREFIX": str(folder), "OPAL_BINDIR": f"{folder}/bin", "OPAL_LIBDIR": f"{folder}/components", "OPAL_PKGLIBDIR": f"{folder}/components",
            "OPAL_DATADIR": f"{folder}/help", "OPAL_PKGDATADIR": f"{folder}/help", "OPAL_SYSCONFDIR": f"{folder}/help",
            "PMIX_MCA_mca_base_component_path": f"{folder}/pmix", "PMIX_MCA_pcompress_base_silence_warning": "1"}


def environment(bundle, root, cuda=()):
    """Returns the environment of the bundle's programs. `cuda`: the folders of CUDA's libraries."""
    added = {"OMP_PROC_BIND": "false", "OMP_WAIT_POLICY": "passive", "MYLOS_SOURCE": str(root),
             "MYLOS_REFERENCE": str(bundle.reference), "MYLOS_DATA": str(bundle.root / "data"), **OPEN_MPI}
    if bundle.open_mpi is not None:
        added |= open_mpi_names(bundle.open_mpi) | {"MYLOS_MPIEXEC": str(bundle.launcher)}
    folders = [*map(str, bundle.libraries), *map(str, cuda), os.environ.get("LD_LIBRARY_PATH", "")]
    added["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    return {**os.environ, **added}


# Messages of a program that cannot compute here, because the driver, a GPU, the architecture or a library is missing.
HOPELESS = r"driver|no GPU|compute capability|shared librar|symbol lookup|\.so"


def check_program(program, model, names):
    """Returns why the program does not compute here, or None. Errors: Refused if no other check could succeed either."""
    done = run([program, "bench", "gemm", "--model", model, "--tokens", "8", "--repeats", "1"], 120, names)
    if done.code == 0:
        return None
    text = re.sub(r"^mylos: (error: )?", "", done.reason())
    if done.code == 127 or re.search(HOPELESS, text):
        raise Refused(f"the program for GPUs does not run here: {text}")
    return text


def cuda_version():
    compiler = shutil.which("nvcc")
    found = re.search(r"release ([\d.]+)", run([compiler, "--version"], 30).output) if compiler else None
    return found[1] if found else None


def describe(program, names):
    """Returns a description of the build and the machine."""
    build = json.loads(run([program, "info", "--json"], 60, names).output or "{}")
    cpu = next((line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    return {"build": {key: build.get(key) for key in ("version", "commit", "compiler", "kokkos", "kokkos_backend", "gemm_providers", "hdf5")},
            "cuda_toolkit": cuda_version(), "python": platform.python_version(), "cpu": cpu,
            "cpus": len(os.sched_getaffinity(0)), "system": platform.platform()}
