"""Compares reading, decoding and augmenting files of photographs in one thread."""

import pathlib
import subprocess
import zipfile

from comparison import pictures
from comparison.environment import PeersMissing, cache_directory
from comparison.mylos import run_json
from comparison.peer import Peer
from comparison.training import say

SIZE = 224
PASSES = 4
# Python packages that contain photographs, and the names of these files.
PACKAGES = {
    "scikit-image==0.26.0": ["skimage/data/" + name for name in (
        "astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png", "motorcycle_right.png",
        "retina.jpg", "rocket.jpg")],
    "scikit-learn==1.9.1": ["sklearn/datasets/images/china.jpg", "sklearn/datasets/images/flower.jpg"],
}


def unpacked(session):
    """Returns the picture files. Downloads them at the first call."""
    directory = cache_directory() / "photographs"
    for requirement, names in PACKAGES.items():
        if all((directory / name).exists() for name in names):
            continue
        wheels = session.scratch("wheels")
        command = [session.python, "-I", "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                   "--dest", wheels, requirement]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise PeersMissing(f"{requirement} cannot be fetched: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
        (wheel,) = wheels.glob(requirement.split("==")[0].replace("-", "_") + "-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory, names)
    return [directory / name for names in PACKAGES.values() for name in names]


def check_evaluation(session, peer, program, directory, count):
    """Checks that both programs see the same pixels of every image, to one level in 255."""
    ours, theirs = session.scratch("ours.raw"), session.scratch("theirs.raw")
    subprocess.run([program, "--data", directory, "--size", str(SIZE), "--write", ours], check=True)
    peer.ask("evaluate", output=str(theirs))
    pixels = ours.read_bytes(), theirs.read_bytes()
    if {len(one) for one in pixels} != {count * SIZE * SIZE * 3}:
        raise ValueError(f"{len(pixels[0])} bytes of pixels of ours, {len(pixels[1])} of torchvision")
    most = max(abs(a - b) for a, b in zip(*pixels))
    if most > 1:
        raise ValueError(f"pixels differ by {most} levels")
    session.results.check("photographs: mean pixel of an evaluation", [sum(pixels[0])], [sum(pixels[1])], 1e-3)


def decoding(session):
    """Compares the images per second that one thread reads, decodes, crops at random, resizes, mirrors and normalises."""
    what = "decoding and augmenting JPEG, one thread"
    program = pathlib.Path(session.program).parent / "bench/bench_images"
    if not program.exists():
        raise PeersMissing(f"{program} is not there; scripts/build makes it")
    directory = session.scratch("photographs")
    command = [program, "--data", directory, "--size", str(SIZE), "--rounds", "1", "--passes", str(PASSES), "--json"]
    ours, theirs = [], []
    with Peer(session.python, "imaging.py", 1, session.scratch("imaging.log")) as peer:
        peer.ask("write", pictures=list(map(str, unpacked(session))), directory=str(directory))
        count = peer.ask("load", directory=str(directory), size=SIZE, mean=pictures.MEAN, std=pictures.STD)["images"]
        check_evaluation(session, peer, program, directory, count)
        peer.ask("passes", count=1)
        for turn in range(session.rounds):
            measured, reply = run_json(command, 1), peer.ask("passes", count=PASSES)
            if measured["images"] != reply["images"]:
                raise ValueError(f"{measured['images']} images of ours, {reply['images']} of torchvision")
            ours.append(measured["images"] / measured["seconds"][0])
            theirs.append(reply["images"] / reply["seconds"])
            say(f"{what}: round {turn + 1} of {session.rounds}: {ours[-1]:.1f}, {theirs[-1]:.1f} images/s")
    session.results.cell(what, "Mylos", "images/s", ours)
    session.results.cell(what, "torchvision ImageFolder", "images/s", theirs)
    session.results.ratio(what, "torchvision ImageFolder", ours, theirs)
