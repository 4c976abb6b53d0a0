"""check_prefix.py PREFIX SOURCE BUILD: checks that all files are installed, and name neither the source tree nor the build tree."""

import pathlib
import sys


def expected(source):
    """Yields the files of an installation relative to its prefix; * stands for GNUInstallDirs' name of lib."""
    yield from ("bin/mylos", "bin/mylos-job.sh", "lib*/**/cmake/mylos/mylos-config.cmake", "lib*/**/cmake/mylos/mylos-config-version.cmake", "lib*/**/libmylos_core.a")
    yield from (f"include/mylos/{path.relative_to(source)}" for folder in ("core", "data", "families", "nn", "parallel", "tasks", "train")
               for path in (source / folder).rglob("*.hpp"))
    for folder in ("examples", "jobscripts"):
        yield from (f"share/mylos/{path.relative_to(source)}" for path in (source / folder).rglob("*")
                    if path.is_file() and "__pycache__" not in path.parts and path.name != "mylos-job.sh")
    yield from ("share/mylos/smoke/CMakeLists.txt", "share/man/man1/mylos.1", "share/bash-completion/completions/mylos")


def breaches(prefix, source, build):
    for name in expected(source):
        if not any(prefix.glob(name)):
            yield f"{name} is not there"
    for path in sorted(p for p in prefix.rglob("*") if p.is_file()):
        content = path.read_bytes()
        for tree in (build, source):
            if str(tree).encode() in content:
                yield f"{path.relative_to(prefix)} names {tree}"
                break
        if path.name.endswith(".cpp") or "__pycache__" in path.parts:
            yield f"{path.relative_to(prefix)} should not be installed"


def main():
    prefix, source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    found = list(breaches(prefix, source, build))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
