"""Checks the options that job scripts pass to `mylos train` and `mylos compare`, with a launcher or a program that prints them, and where
they find their functions.

    check_arguments.py SCRIPTS
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BATCHES = {"TOTAL_BATCH_SIZE": "64", "BATCH_SIZE_PER_DEVICE": "4"}
FUNCTIONS = "mylos-job.sh"
GIVEN = {"MODEL": "model", "TRAIN": "train", "DEV": "dev", "OUTPUT": "no-such-run", "MYLOS": "true", "LAUNCHER": "echo", "OPTIONS": "--epochs 3"}


def compares(script):
    """Returns whether a script runs `mylos compare`, which starts the launcher itself and has a fixed batch per rank."""
    return script.stem == "compare"


def run(script, **given):
    """Runs a script, with a stand-in for `module`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS"))}
    environment.update(GIVEN, SCRIPT=str(script), **{"BASH_FUNC_module%%": "() { :; }"})
    return subprocess.run(["bash", script], env={**environment, **given}, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def arguments_of(script, **given):
    """Runs a script. Returns the words that it passes to the launcher, or to the program if that starts the launcher."""
    program = {"MYLOS": "echo"} if compares(script) else {}
    done = run(script, **{"PATH": f"{script.parents[1]}:{os.environ['PATH']}", **program, **given})
    if done.returncode != 0:
        raise AssertionError(f"{script}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.split()


def breaches(script):
    usual = arguments_of(script)
    if usual[-2:] != ["--epochs", "3"] or {"--batch", "--micro-batch"} & set(usual):
        yield f"with no batch set it passes {usual}"
    command = ["compare", "--model", "model", "--train", "train", "--dev", "dev"] if compares(script) else ["true", "train", "--model", "model"]
    if usual[:len(command)] != command or usual[usual.index("--output") + 1] != GIVEN["OUTPUT"]:
        yield f"it passes {usual}"
    for given, words in (({}, []), ({"TOTAL_BATCH_SIZE": "64"}, ["--batch", "64"]),
                         ({"BATCH_SIZE_PER_DEVICE": "4"}, ["--micro-batch", "4"]),
                         (BATCHES, ["--batch", "64", "--micro-batch", "4"])):
        if arguments_of(script, **given) != usual[:-2] + ([] if compares(script) else words) + usual[-2:]:
            yield f"with {given} it passes {arguments_of(script, **given)}"


def striping_breaches(script, folder):
    """Checks that a script stripes the run's directory before the run on Lustre, and creates no directory elsewhere."""
    calls, output = folder / "calls", folder / script.name
    lfs = folder / "lfs"
    lfs.write_text(f'#!/bin/sh\necho "$*" >>"{calls}"\n')
    lfs.chmod(0o755)
    calls.write_text("")
    arguments_of(script, OUTPUT=str(output), PATH=f"{folder}:{script.parents[1]}:{os.environ['PATH']}")
    if calls.read_text() != f"setstripe -c 4 -S 4M {output}\n" or not output.is_dir():
        yield f"with an lfs it calls {calls.read_text()!r}"
    arguments_of(script, OUTPUT=str(folder / "unstriped"))
    if (folder / "unstriped").exists():
        yield "without an lfs it makes the run's directory"


def finding_breaches(script, folder):
    """Checks that a copy of a script finds its functions beside the program and in the job's directory, and else says what to do."""
    home, prefix = folder / "home", folder / "bin"
    for place in (home, prefix):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    copy = shutil.copy(script, folder / "spooled")  # as batch systems do
    program = prefix / "program"
    program.symlink_to(shutil.which("echo" if compares(script) else "true"))
    given = {"MYLOS": str(program), "PATH": os.environ["PATH"], "PBS_O_WORKDIR": str(home), "BASH_ENV": str(folder / "starts-in")}
    (folder / "starts-in").write_text(f"cd {home if script.suffix == '.sbatch' else folder}\n")  # PBS starts jobs in the user's home
    done = run(copy, **given)
    if done.returncode != 2 or not done.stderr.startswith(f"{FUNCTIONS} is not found: load the module") or done.stderr.count("\n") != 1:
        yield f"without functions it ends with {done.returncode}: {done.stderr}"
    for place in (prefix, home):
        shutil.copy(script.parents[1] / FUNCTIONS, place)
        done = run(copy, **given)
        if done.returncode != 0 or "--model model" not in done.stdout:
            yield f"with functions in {place.name} it ends with {done.returncode}: {done.stdout}{done.stderr}"
        (place / FUNCTIONS).unlink()


def main(folder):
    scripts = [file for file in sorted(pathlib.Path(folder).resolve().glob("*/*")) if file.is_file()]
    found = [f"{script}: {breach}" for script in scripts for breach in breaches(script)]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch).resolve()
        found += [f"{script}: {breach}" for script in scripts for breach in striping_breaches(script, scratch)]
        found += [f"{script}: {breach}" for script in scripts for breach in finding_breaches(script, scratch)]
    print("\n".join(found))
    return 1 if found or len(scripts) < 12 or sum(map(compares, scripts)) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
