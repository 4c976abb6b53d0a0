"""Checks, without a batch system, that job scripts are short and plain and pass shellcheck.

    check_scripts.py SCRIPTS
"""

import pathlib
import shutil
import subprocess
import sys

FUNCTIONS = "mylos-job.sh"  # shared by the scripts, which are short
MOST_LINES, MOST_SHARED_LINES, WIDTH = 18, 182, 120


def breaches(script):
    lines = script.read_text().splitlines()
    if lines[0] != "#!/usr/bin/env bash":
        yield "does not begin with #!/usr/bin/env bash"
    most = MOST_SHARED_LINES if script.name == FUNCTIONS else MOST_LINES
    if len(lines) > most:
        yield f"{len(lines)} lines; {most} are allowed"
    yield from (f"line {i} has {len(line)} characters" for i, line in enumerate(lines, 1) if len(line) > WIDTH)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR/..", "-s", "bash", str(script)], capture_output=True, text=True)
        if done.returncode != 0:
            yield done.stdout


def main(folder):
    scripts = sorted(file for file in pathlib.Path(folder).rglob("*") if file.is_file())
    found = [f"{script}: {breach}" for script in scripts for breach in breaches(script)]
    print("\n".join(found))
    return 1 if found or not scripts else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
