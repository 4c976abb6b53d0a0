"""Runs the commands that a page of the documentation shows as a reader would: in order, in one shell.

    check_commands.py ROOT PROGRAM CTEST BUILD PAGE     PAGE: README.md, docs/plan.md, ...

A command is a line of an indented block whose first line begins with one of PROGRAMS. There are three kinds:
- Most run in a new directory, prepared as if the reader had followed the earlier pages (sandbox.py), with PROGRAM as mylos.
- Commands that submit a job script are only checked, because the tests jobs.* run the scripts.
- Commands in elsewhere.py are run by another test, or cannot run here, for the reason given there.
Exits with 1 and a line for each command that fails, for each whose other test does not exist, and for each unknown script or variable.
"""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import elsewhere
import sandbox

PROGRAMS = re.compile(
    r"(?:export |(?:[A-Z][A-Z_]*=\S* )*)?(?:\./|build/release/)?"
    r"(?:mylos|scripts/|bench/|lab/|cmake|ctest|spack|apptainer|srun|sbatch|qsub|mpirun|git|h5ls|h5dump|cp|cd|echo|tensorboard|man|[A-Z][A-Z_]*=)"
)


def blocks(text):
    """Yields the indented blocks, each as a list of (number, line)."""
    block = []
    for number, line in enumerate([*text.splitlines(), "end"], 1):
        if line.startswith("    "):
            block.append((number, line[4:]))
        elif block:
            yield block
            block = []


def commands(text):
    """Yields (number, command) for the commands of a page. If lines of a block begin with $, its other lines are output."""
    for block in blocks(text):
        if not PROGRAMS.match(block[0][1].removeprefix("$ ")):
            continue
        prompted = any(line.startswith("$ ") for _, line in block)
        begun, command = 0, ""
        for number, line in block:
            if prompted and not command and not line.startswith("$ "):
                continue
            begun = begun or number
            command += line.removeprefix("$ ").rstrip("\\") if line.endswith("\\") else line.removeprefix("$ ")
            if not line.endswith("\\"):
                yield begun, re.sub(r"\s{2,}#.*$", "", command).strip()
                begun, command = 0, ""


def exported(command):
    """Returns the names of the variables that `command` exports."""
    return set(re.findall(r"([A-Z_]+)=", command)) if command.startswith("export ") else set()


def bare_commands(text):
    """Yields (number, line) of commands outside a block, which would be rendered as running text."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(?:[A-Z][A-Z_]*=\S+ )+(?:sbatch|qsub|mylos|srun|mpirun)\b", line):
            yield number, line


def needs(functions, name):
    """Returns the variables that the function `name` of the job scripts needs."""
    body = re.search(rf"^{name}\(\) {{\n(.*?)^}}", functions, re.MULTILINE | re.DOTALL).group(1)
    found = re.search(r"^  need ([A-Z ]+)$", body, re.MULTILINE)
    return found.group(1).split() if found else needs(functions, "run_settings")


def check_job(root, command, known=frozenset()):
    """Returns the error of a command that submits a job, or "". The page has exported the variables `known` before it."""
    words = shlex.split(command)
    script = pathlib.Path(words[-1]).name
    found = list((root / "jobscripts").glob(f"*/{script}"))
    if not found:
        return f"there is no job script {script}"
    text, functions = (file.read_text(encoding="utf-8") for file in (found[0], root / "jobscripts/mylos-job.sh"))
    given = [name for word in words[:-1] for name in re.findall(r"(?:^|,)([A-Z_]+)=", word)]
    unknown = [name for name in given if not re.search(rf"\b{name}=\${{{name}:-", functions)]
    if unknown:
        return f"{script} has no variable {', '.join(unknown)}"
    function = re.search(r"^mylos_\w+", text, re.MULTILINE).group()
    missing = [name for name in needs(functions, function) if name not in known and name not in given]
    return f"{script} needs {', '.join(missing)}, which the page does not give" if missing else ""


def check_elsewhere(root, command, tests, known=frozenset()):
    """Returns the error of an entry of elsewhere.py for `command`, "" if the entry is right, or None if there is no entry."""
    if re.search(r"(?:^|\s)(sbatch|qsub) ", command) and not command.endswith("/sweep.sbatch"):  # which mylos sweep writes
        return check_job(root, command, known)
    for pattern, kind, where in elsewhere.COMMANDS:
        if not re.search(pattern, command):
            continue
        if kind == "not here":
            print(f"skipped: {command}: {where}")
        elif kind == "ctest" and not any(re.search(where, test) for test in tests):
            return f"no test of ctest is called {where}"
        elif kind == "ci" and not re.search(rf"step {re.escape(where)}(?= |$)", (root / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE):
            return f".ci/run has no step {where}"
        return ""
    program = re.sub(r"^([A-Z_]+=\S* )*", "", command).split()[0]
    if program != "mylos" and "/" not in program and shutil.which(program) is None and program not in ("cd", "export"):
        print(f"skipped: {command}: {program} is not installed")
        return ""
    return None


def script_of(here):
    """Returns a shell script that prints the number of each command and runs it. The first command that fails ends the script."""
    lines = ["set -eo pipefail"]
    for number, command in here:
        lines += [f"echo ':: {number}' >&2", command]
    return "\n".join(lines)


def run(here, folder, program, page):
    environment = sandbox.make(folder, program, page, [command for _, command in here])
    ended = subprocess.run(["bash", "-c", script_of(here)], cwd=folder / "work", env=environment, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
    if ended.returncode == 0:
        return []
    number = int(re.findall(r"^:: (\d+)$", ended.stderr, re.MULTILINE)[-1])
    output = "\n  ".join((ended.stdout + ended.stderr).splitlines()[-12:])
    return [f"{number}: {dict(here)[number]}\nexit code {ended.returncode}:\n  {output}"]


def names_of_tests(ctest, build):
    listing = subprocess.run([ctest, "--test-dir", build, "-N"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"Test +#\d+: (\S+)", listing)


def has_mpi(program):
    info = subprocess.run([program, "info"], check=True, capture_output=True, text=True).stdout
    return not re.search(r"^mpi +not in this build$", info, re.MULTILINE)


def check_page(root, program, ctest, build, page):
    root, mpi = pathlib.Path(root), has_mpi(program)
    here, breaches, tests = [], [], names_of_tests(ctest, build)
    text, known, missing = (root / page).read_text(encoding="utf-8"), set(), set()
    breaches += [f"{number}: {line}: indent it, or it is no block" for number, line in bare_commands(text)]
    for number, command in commands(text):
        known |= exported(command)
        if not mpi and (re.search(r"\b(?:mpirun|srun|sbatch)\b|--ranks\b", command) or missing & set(command.split())):
            print(f"skipped: {command}: this build has no MPI")
            missing |= set(re.findall(r"> (\S+)$", command))  # what it would have written
            continue
        wrong = check_elsewhere(root, command, tests, known)
        if wrong is None:
            here.append((number, command))
        elif wrong:
            breaches.append(f"{number}: {command}: {wrong}")
    if any(not exported(command) for _, command in here):
        with tempfile.TemporaryDirectory(prefix="mylos-docs-") as folder:
            breaches += run(here, pathlib.Path(folder), pathlib.Path(program), page)
    for breach in breaches:
        print(f"{page}:{breach}")
    print(f"{page}: {len(here)} commands were run here")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(check_page(*sys.argv[1:]))
