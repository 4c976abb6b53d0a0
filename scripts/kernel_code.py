"""Compiles core/kernels of a build for GPUs at full optimisation, and names the kernels that spill registers to memory, or whose accesses
are not those that were counted.

    kernel_code.py BUILD [ARCHITECTURE...]

BUILD is a configured build folder whose compile commands name sources, folders and definitions; ARCHITECTURE is 80 or 90, by default both. Only
device code is compiled, a minute for each architecture. Exits with 1 if a kernel spills more than ALLOWED says, or if COUNTED does not hold.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# Kernels that may spill: architectures, expression for the name, and the most bytes of stores and loads.
ALLOWED = [
    ((80,), r"ForwardPass<.*mylos::(half|bfloat16), 64>", 24),
    # The portable kernels keep rows of a tile for any head size in each thread.
    ((80, 90), r"ParallelFor<mylos::attention::\(anonymous namespace\)::(Forward|Backward)<", 1024),
]
# Kernels that move each array as often as needed, 16 bytes at a time: expression for the name, and the loads and stores of 16 bytes in their
# unrolled code for 16-bit elements. Other numbers are right if lab/results/gpu-kernels.md has the same count of bytes.
COUNTED = [
    (r"RotateRow<mylos::(half|bfloat16)>", 8, 4),
    (r"ClassLoss<mylos::(half|bfloat16)>", 10, 4),
    (r"NormBlockStatistics<mylos::(half|bfloat16)>", 2, 0),
    (r"layer_norm::NormalizeHeld<mylos::(half|bfloat16)>", 20, 8),
    (r"layer_norm::BackwardHeld<mylos::(half|bfloat16), true, 1>", 9, 14),
]
# Kernels with divisions of 64 bits in Kokkos' code alone, which has none of div.u64.
UNDIVIDED = r"RotateRow<|ClassLoss<"
# scripts/test-cuda appends a flag that switches optimisation off.
NO_APPENDED_FLAGS = {name: value for name, value in os.environ.items() if name != "NVCC_APPEND_FLAGS"}
SPILL = re.compile(r"spilled to local memory in function '(.+?)', (\d+) bytes spill stores, (\d+) bytes spill loads")


def device_commands(build, architecture, output):
    """Yields a source, its folder, and the command that compiles its kernels."""
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words, kept = shlex.split(entry["command"]), []
        for word, following in zip(words, [*words[1:], ""]):
            if word.startswith(("-D", "-I")):
                kept.append(word)
            elif word == "-isystem":
                kept += [word, following]
        yield entry["file"], entry["directory"], [
            "nvcc", "-x", "cu", "-cubin", f"-arch=sm_{architecture}", "--extended-lambda", "-std=c++20", "-O3", "-Xcompiler", "-fopenmp",
            "-Xptxas", "-warn-spills", "--keep", "--keep-dir", str(output.parent), "-o", str(output), *kept, entry["file"]]


def demangled(text):
    return subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout


def miscounted(ptx):
    """Returns the number of kernels in COUNTED, and a line for each that differs from it."""
    count, lines = 0, []
    for name, code in re.findall(r"\.entry (\S+)\((.*?)\n\}", ptx, re.DOTALL):
        name = demangled(name)
        loads, stores = (len(re.findall(rf"\b{access}(?:\.global)?\.v4\.", code)) for access in ("ld", "st"))
        expected = next((numbers for kernel, *numbers in COUNTED if re.search(kernel, name)), None)
        count += expected is not None
        if expected and expected != [loads, stores]:
            lines.append(f"{loads} loads and {stores} stores of 16 bytes, expected {expected[0]} and {expected[1]}, in {name}")
        if re.search(UNDIVIDED, name) and "div.u64" in code:
            lines.append(f"64-bit divisions in {name}")
    return count, lines


def spills(build, architecture):
    """Returns the number of sources, (kernel, bytes of stores, bytes of loads) of each kernel that spills, and what `miscounted` does."""
    found, sources, counted, lines = [], 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        for source, directory, command in device_commands(build, architecture, pathlib.Path(folder) / "kernels.cubin"):
            if "/core/kernels/" not in source:
                continue
            sources += 1
            result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=NO_APPENDED_FLAGS)
            if result.returncode != 0:
                sys.exit(f"{shlex.join(command)}\n{result.stderr[-4000:]}")
            found += [(name, int(stores), int(loads)) for name, stores, loads in SPILL.findall(demangled(result.stderr))]
            for ptx in pathlib.Path(folder).glob("*.ptx"):
                count, differing = miscounted(ptx.read_text(encoding="utf-8"))
                counted, lines = counted + count, lines + differing
                ptx.unlink()
    return sources, found, counted, lines


def is_allowed(architecture, name, most):
    return any(architecture in architectures and re.search(kernel, name) and most <= limit for architectures, kernel, limit in ALLOWED)


def main():
    build, wanted = pathlib.Path(sys.argv[1]).resolve(), [int(word) for word in sys.argv[2:]] or [80, 90]
    refused = 0
    for architecture in wanted:
        sources, found, counted, lines = spills(build, architecture)
        unseen = [kernel for architectures, kernel, _ in ALLOWED
                  if architecture in architectures and not any(re.search(kernel, name) for name, _, _ in found)]
        if unseen:
            sys.exit(f"sm_{architecture}: no kernel spills that matches {unseen}; take it out of ALLOWED, or see what ptxas says")
        for name, stores, loads in found:
            allowed = is_allowed(architecture, name, max(stores, loads))
            refused += not allowed
            print(f"sm_{architecture}: {stores} bytes of stores and {loads} of loads{', as is known,' if allowed else ''} in {name}")
        if counted != 2 * len(COUNTED):
            sys.exit(f"sm_{architecture}: {counted} kernels match COUNTED, not two for each line of it")
        refused += len(lines)
        for line in lines:
            print(f"sm_{architecture}: {line}")
        print(f"sm_{architecture}: {sources} sources, {len(found)} kernels that spill, {counted} with counted accesses")
    if not sources:
        sys.exit("no source is in core/kernels")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
