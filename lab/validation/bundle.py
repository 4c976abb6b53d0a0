"""Opens the bundle of lab/bundle-gpu: a build for GPUs, one for the CPU, their libraries, and data."""

import functools
import json
import lzma
import os
import pathlib
import sys
import tarfile

from validation.commands import run

MANIFEST = "manifest.json"
ARCHIVE = "bundle.tar.xz"
LOSSES = "losses.json"

MOST_MIB = 55  # of a packed bundle


class Refused(Exception):
    """Nothing can be run; the message is one line for the user."""


class Bundle:
    def __init__(self, manifest, root, stand_in):
        """`stand_in`: use the build for the CPU in place of that for GPUs."""
        self.manifest, self.root, self.stand_in = manifest, root, stand_in

    def program(self, build, name="mylos"):
        """Returns the path of a program. `build`: gpu or cpu."""
        return self.root / ("cpu" if self.stand_in else build) / "bin" / name

    @functools.cached_property
    def libraries(self):
        """Returns the folders of libraries. GCC's libraries of the machine are used if programs start with them, because those of the
        bundle need the glibc that they were built for."""
        folder = self.root / "lib"
        names = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))}
        starts = run([self.program("cpu"), "--version"], 60, names).code == 0
        return [folder] if starts else [folder / "gcc", folder]

    @property
    def open_mpi(self):
        """Returns the folder of Open MPI, or None if the programs use that of the machine."""
        folder = self.root / "openmpi"
        return folder if folder.is_dir() else None

    @property
    def launcher(self):
        """Returns the path of mpirun, or None if that of the machine is to be used."""
        return self.open_mpi and self.open_mpi / "bin/mpirun"

    @functools.cached_property
    def losses(self):
        """Returns the losses of the CPU that were recorded when the bundle was made, by agreement.loss_key."""
        file = self.root / "data" / LOSSES
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    @property
    def reference(self):
        return self.root / "data/reference"

    @property
    def questions(self):
        return self.root / "data/squad/v1.1/train.json"

    @property
    def vocabulary(self):
        return self.root / "data/vocab/bert-base-uncased.txt"


def read_manifest(folder):
    path = folder / MANIFEST
    if not path.is_file():
        raise Refused(f"no bundle in {folder}: {MANIFEST} is not there; make it with lab/bundle-gpu, or name it with --bundle")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise Refused(f"{path} cannot be read ({error}); make the bundle again with lab/bundle-gpu") from error


def open_bundle(folder, scratch, stand_in):
    """Returns the bundle in `folder`. If it is an archive, unpacks it into `scratch`."""
    folder = pathlib.Path(folder)
    manifest = read_manifest(folder)
    root = folder
    archive = folder / ARCHIVE
    if archive.is_file():
        root = scratch / "bundle"
        try:
            with tarfile.open(archive, "r:xz") as packed:
                packed.extractall(root, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
            raise Refused(f"{archive} cannot be unpacked: {error}; make the bundle again with lab/bundle-gpu") from error
    bundle = Bundle(manifest, root, stand_in)
    for needed in (bundle.program("cpu"), bundle.program("gpu"), bundle.questions, bundle.vocabulary):
        if not needed.is_file():
            raise Refused(f"{needed.relative_to(root)} is not in the bundle; make it again with lab/bundle-gpu")
    return bundle


def check_size(folder):
    """Returns the MiB of a packed bundle. Errors: Refused if it has more than MOST_MIB."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    if size > MOST_MIB:
        raise Refused(f"the bundle in {folder} has {size:.1f} MiB, more than {MOST_MIB}: with the source tree it might not fit where it has to go")
    return size


if __name__ == "__main__":
    try:
        print(f"{sys.argv[1]}: {check_size(pathlib.Path(sys.argv[1])):.1f} MiB of {MOST_MIB}", file=sys.stderr)
    except Refused as reason:
        sys.exit(f"bundle-gpu: {reason}")
