"""Saves and loads tensors of given shapes with PyTorch's distributed checkpoint or safetensors; prints seconds as JSON.

usage: checkpoint.py dcp|safetensors DIRECTORY < tensors.json    tensors.json: [[name, shape], ...]

Saves three tensors of each shape: the parameter and both moments of AdamW. A timing includes flushing the bytes to the disk.
"""

import json
import os
import pathlib
import sys
import time

import torch


def tensors(shapes, group):
    return {f"{group}.{name}": torch.rand(shape) for name, shape in shapes}


def flush(directory):
    for path in directory.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())


def dcp(state, directory):
    import torch.distributed.checkpoint as checkpoint

    begin = time.monotonic()
    checkpoint.save(state, checkpoint_id=directory)
    flush(directory)
    saved = time.monotonic()
    loaded = {name: torch.zeros_like(value) for name, value in state.items()}
    loading = time.monotonic()
    checkpoint.load(loaded, checkpoint_id=directory)
    return saved - begin, time.monotonic() - loading, loaded


def safetensors(state, directory):
    from safetensors.torch import load_file, save_file

    begin = time.monotonic()
    save_file(state, directory / "state.safetensors")
    flush(directory)
    saved = time.monotonic()
    loaded = {name: value.clone() for name, value in load_file(directory / "state.safetensors").items()}
    return saved - begin, time.monotonic() - saved, loaded


def main(which, directory):
    shapes = json.load(sys.stdin)
    state = {}
    for group in ("model", "m", "v"):
        state.update(tensors(shapes, group))
    save, load, loaded = {"dcp": dcp, "safetensors": safetensors}[which](state, pathlib.Path(directory))
    assert all(torch.equal(loaded[name], value) for name, value in state.items()), "other values came back"
    print(json.dumps({"save": save, "load": load, "bytes": sum(value.nbytes for value in state.values())}))


main(*sys.argv[1:])
