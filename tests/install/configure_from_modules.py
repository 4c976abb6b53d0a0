"""Configures the tree as at a site whose modules put prefixes into CMAKE_PREFIX_PATH, without Spack.

    configure_from_modules.py ROOT SCRATCH KOKKOS_DIR KERNELS_DIR

CMake starts with an empty cache. It finds the packages Kokkos and KokkosKernels in one prefix each, as an installed upstream release
would be. They are those of this build, but report version 5.1.1. A oneDNN that reports this version is refused.
"""

import os
import pathlib
import shutil
import subprocess
import sys

VERSION = "5.1.1"


def install(prefix, package, real, text=""):
    folder = prefix / "lib/cmake" / package
    folder.mkdir(parents=True)
    (folder / f"{package}Config.cmake").write_text(f'include("{real}/{package}Config.cmake")\n{text}', encoding="utf-8")
    (folder / f"{package}ConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{VERSION}")\n'
        "if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n", encoding="utf-8")
    return folder


def main():
    root, scratch, kokkos, kernels = map(pathlib.Path, sys.argv[1:5])
    shutil.rmtree(scratch, ignore_errors=True)
    found = install(scratch / "kokkos", "Kokkos", kokkos)
    install(scratch / "kokkos-kernels", "KokkosKernels", kernels)
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_ROOT")}
    environment["CMAKE_PREFIX_PATH"] = f"{scratch}/kokkos:{scratch}/kokkos-kernels"
    environment["MYLOS_PREFIX"] = str(scratch / "cache")
    command = ["cmake", "-S", root, "-B", scratch / "build", "-DMYLOS_ENABLE_TESTS=OFF", "-DMYLOS_ENABLE_BENCH=OFF", *sys.argv[5:]]

    def configure(*more):
        result = subprocess.run([*command, *more], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(result.stdout)
        return result

    result = configure()
    expected = f"Kokkos            {VERSION} "
    if result.returncode != 0 or expected not in result.stdout or str(found) not in result.stdout:
        sys.exit(f"the configuration should succeed and say '{expected}' and {found}")
    onednn = scratch / "onednn"
    onednn.mkdir()
    (onednn / "dnnl-config.cmake").touch()
    shutil.copy(found / "KokkosConfigVersion.cmake", onednn / "dnnl-config-version.cmake")
    result = configure(f"-Ddnnl_DIR={onednn}")
    if result.returncode == 0 or f"oneDNN {VERSION} in {onednn} has another interface" not in " ".join(result.stdout.split()):
        sys.exit("oneDNN 3 and later should be refused")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
