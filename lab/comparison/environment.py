"""Creates the Python environment of the peers once, outside the tree, with the versions of lab/peers/requirements.txt."""

import json
import os
import pathlib
import subprocess
import sys
import venv

PEERS = pathlib.Path(__file__).resolve().parent.parent / "peers"
REQUIREMENTS = PEERS / "requirements.txt"
# The same PyTorch without gigabytes of GPU libraries; used if this index can be reached.
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


class PeersMissing(Exception):
    """The peers cannot run, for the given reason; the rows that need them are left out."""


def cache_directory():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "mylos"


def requirements():
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def installed_versions(python):
    """Returns the version of each package of the list, or None if it is missing."""
    names = [requirement.split("==")[0] for requirement in requirements()]
    script = ("import importlib.metadata as m, json, sys\n"
              "def version(name):\n"
              "    try: return m.version(name)\n"
              "    except m.PackageNotFoundError: return None\n"
              "print(json.dumps({name: version(name) for name in sys.argv[1:]}))")
    done = subprocess.run([python, "-c", script, *names], capture_output=True, text=True)
    if done.returncode != 0:
        raise PeersMissing(f"{python} does not run: {done.stderr.strip()[-200:]}")
    return json.loads(done.stdout)


def is_current(versions):
    """Returns whether the versions equal those of the list. A suffix of the build ("+cpu") is ignored."""
    pinned = dict(requirement.split("==") for requirement in requirements())
    return all((versions[name] or "").split("+")[0] == version for name, version in pinned.items())


def pip(python, *words):
    command = [python, "-I", "-m", "pip", "--disable-pip-version-check", "install", "--only-binary=:all:", "--quiet", *words]
    return subprocess.run(command, capture_output=True, text=True)


def make_environment(directory):
    print(f"Installing the peers into {directory} (once)", file=sys.stderr)
    try:
        venv.create(directory, with_pip=True, clear=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise PeersMissing(f"no virtual environment can be made in {directory}: {error} (Debian: python3-venv)") from error
    python = str(directory / "bin/python")
    torch = next(requirement for requirement in requirements() if requirement.startswith("torch=="))
    pip(python, torch, "--index-url", CPU_WHEELS, "--retries", "0", "--timeout", "15")  # if this fails, the next command installs it
    done = pip(python, "--requirement", str(REQUIREMENTS))
    if done.returncode != 0:
        reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise PeersMissing(f"the peers could not be installed: {reason}; give a Python that has them as MYLOS_PYTHON")
    return python


def peers_python():
    """Returns a Python that has the peers, and their versions. Errors: PeersMissing."""
    given = os.environ.get("MYLOS_PYTHON")
    directory = cache_directory() / "bench-venv"
    python = given or str(directory / "bin/python")
    if not given and (not pathlib.Path(python).exists() or not is_current(installed_versions(python))):
        python = make_environment(directory)
    versions = installed_versions(python)
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        raise PeersMissing(f"{python} lacks {', '.join(missing)}")
    return python, versions
