"""Describes the machine and the programs that were measured: processor, memory, builds, versions."""

import json
import os
import pathlib
import platform
import subprocess

INTERESTING = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_tile", "sve", "bf16")


def cpu_fields():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def cpu_flags():
    fields = cpu_fields()
    return set((fields.get("flags") or fields.get("Features") or "").split())


def usable_cpus():
    return len(os.sched_getaffinity(0))


def memory_gib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 2**20, 1)
    return None


def mpi_version():
    """Returns the first line of the launcher's version text, or None without a launcher."""
    try:
        done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else None


def describe(program, peers):
    """Returns the description as a dictionary. `peers`: versions of the packages that ran, or None."""
    build = json.loads(subprocess.run([program, "info", "--json"], check=True, capture_output=True, text=True).stdout)
    fields = cpu_fields()
    return {
        "mylos": {key: build[key] for key in ("version", "commit", "compiler", "build_type", "kokkos", "onednn", "threads")},
        "peers": peers,
        "mpi": mpi_version(),
        "python": platform.python_version(),
        "cpu": fields.get("model name", platform.machine()),
        "cpu_family_model": f"{fields.get('cpu family', '?')}/{fields.get('model', '?')}",
        "cpu_features": sorted(cpu_flags() & set(INTERESTING)),
        "cpus": usable_cpus(),
        "memory_gib": memory_gib(),
        "system": platform.platform(),
    }
