"""check_release.py SOURCE: makes a release of a copy of the tree, without building it, and checks its files. Exits with 77 without git."""

import ast
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*words, cwd):
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as work:
        copy, folder = pathlib.Path(work, "copy"), pathlib.Path(work, "files")
        if subprocess.run(["git", "clone", "-q", "--depth", "1", source.as_uri(), copy], stderr=subprocess.DEVNULL).returncode != 0:
            print("SKIPPED: the tree is no checkout of git")
            return 77
        commit = run("git", "rev-parse", "HEAD", cwd=copy)
        run("scripts/release", "--unbuilt", folder, cwd=copy)
        [tarball] = folder.glob("mylos-*.tar.gz")
        recipe = (folder / "package.py").read_text()
        ast.parse(recipe)
        assert f'sha256="{hashlib.sha256(tarball.read_bytes()).hexdigest()}", url="file://{tarball}"' in recipe, recipe
        assert "develop" not in recipe and "git = " not in recipe, "the recipe of a release names the tree"
        assert (folder / "NOTES.md").read_text().count("\n- ") > 10, "the notes have the lines of CHANGELOG.md"

        # Unpacked inside of another checkout, it still knows its own commit.
        (copy / "build").mkdir()
        run("tar", "-C", "build", "-xf", tarball, cwd=copy)
        run("git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "Another", cwd=copy)
        tree = copy / "build" / tarball.name.removesuffix(".tar.gz")
        run("cmake", "-D", f"SOURCE={tree}", "-D", f"OUTPUT={work}/commit.hpp", "-P", tree / "cmake/write_commit.cmake", cwd=work)
        written = pathlib.Path(work, "commit.hpp").read_text()
        assert re.search(f'"{commit[:12]}"', written), written

        (copy / "README.md").write_text("changed")
        refused = subprocess.run(["scripts/release", "--unbuilt", folder.with_name("other")], cwd=copy, capture_output=True, text=True)
        assert refused.returncode == 1 and "changes that are not committed:  M README.md" in refused.stderr, refused.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
