#!/usr/bin/env python3
"""Checks that transformers loads a run's model of the Llama family and computes the same logits, and that Mylos reads models of transformers.

    check_llama.py MYLOS LLAMA_DIRECTORY

LLAMA_DIRECTORY is the tool of llama_directory.cpp. Logits of weights written in float, bfloat16 and half, in one file and in shards,
must agree to 1e-5 of the largest. Both programs compute in float.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

BOUND = 1e-5
TYPES = {"float": torch.float32, "bfloat16": torch.bfloat16, "half": torch.float16}
IDS = [1, 7, 3, 9, 44, 21, 8, 50, 3, 12, 12, 30, 2]


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)


class Tools:
    """The programs, and the document whose logits are computed."""

    def __init__(self, mylos, tool, root):
        self.mylos, self.tool, self.root = mylos, tool, root
        self.document = root / "document.jsonl"
        self.document.write_text(json.dumps({"input_ids": IDS}) + "\n")

    def logits(self, model):
        run(self.tool, "logits", model, self.document, self.root / "logits.safetensors")
        return safetensors.torch.load_file(self.root / "logits.safetensors")["logits"]

    def copy(self, model, target, precision, limit):
        run(self.tool, "copy", model, self.document, target, precision, limit)
        return target


SIZES = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 20000.0, "initializer_range": 0.2,
         "bos_token_id": 1, "eos_token_id": 2}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
# Of each kind the class of its configuration, and what differs from the sizes. The document is longer than the windows.
KINDS = {
    "untied": (LlamaConfig, {}),
    "tied": (LlamaConfig, {"tie_word_embeddings": True}),
    "biases": (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "yarn": (LlamaConfig, {"rope_scaling": YARN}),
    "mistral": (MistralConfig, {"sliding_window": 5}),
    "qwen2": (Qwen2Config, {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1, "tie_word_embeddings": True}),
    "qwen3": (Qwen3Config, {"head_dim": 12, "attention_bias": True}),
}


def make_config(kind):
    config, differences = KINDS[kind]
    return config(**(SIZES | {"tie_word_embeddings": False} | differences))


def train(tools, source, output, precision):
    games = tools.root / "games.jsonl"
    games.write_text("".join(json.dumps({"input_ids": [3 + (7 * i + 5 * j) % 58 for j in range(4 + i % 9)]}) + "\n" for i in range(24)))
    run(tools.mylos, "train", "--model", source, "--train", games, "--dev", games, "--output", output, "--steps", 4, "--batch", 4,
        "--learning-rate", "1e-3", "--gemm", "kokkos-kernels", "--export-precision", precision)
    return output / "best"


def check_loads(tools, name, directory, dtype):
    """Checks that transformers and Mylos compute the same logits with the directory."""
    model, info = AutoModelForCausalLM.from_pretrained(directory, torch_dtype=torch.float32, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], (name, info)
    with torch.no_grad():
        theirs = model.eval()(input_ids=torch.tensor([IDS])).logits[0]
    ours = tools.logits(directory)
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    assert ours.shape == theirs.shape and error <= BOUND, f"{name}: logits differ by {error} of the largest"
    stored = AutoModelForCausalLM.from_pretrained(directory, torch_dtype="auto")
    assert stored.dtype == dtype, f"{name}: transformers loads {stored.dtype}, not {dtype}"
    print(f"{name}: largest difference {error:.1e} of the largest logit")
    return {key: value for key, value in stored.state_dict().items()}


def check_shards(directory):
    index = json.loads((directory / "model.safetensors.index.json").read_text())
    files = sorted(directory.glob("model-*.safetensors"))
    assert len(files) > 1 and not (directory / "model.safetensors").exists()
    assert [file.name for file in files] == [f"model-{i + 1:05}-of-{len(files):05}.safetensors" for i in range(len(files))]
    tensors = {file.name: safetensors.torch.load_file(file) for file in files}
    assert index["weight_map"] == {key: file for file, held in tensors.items() for key in held}
    assert index["metadata"]["total_size"] == sum(value.nbytes for held in tensors.values() for value in held.values())


def check_runs(tools, kind):
    source = tools.root / kind
    make_config(kind).save_pretrained(source)
    weights = {}
    for precision, dtype in TYPES.items():
        best = train(tools, source, tools.root / f"{kind}-{precision}", precision)
        weights[precision] = check_loads(tools, f"{kind} {precision}", best, dtype)
        for limit in (10000, 1):
            shards = tools.copy(best, tools.root / f"{kind}-{precision}-{limit}", precision, limit)
            check_shards(shards)
            check_loads(tools, f"{kind} {precision}, files of {limit} bytes", shards, dtype)
    for precision, dtype in TYPES.items():
        for key, value in weights["float"].items():
            assert torch.equal(weights[precision][key], value.to(dtype)), f"{kind} {precision}: {key} is not the float one, rounded"


def check_theirs(tools, kind):
    """Checks that Mylos reads the shards of transformers."""
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(make_config(kind)).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():  # biases begin at 0, and norms at 1
            if values.dim() == 1:
                values.normal_(1.0 if "norm" in name else 0.0, 0.3)
        theirs = model(input_ids=torch.tensor([IDS])).logits[0]
    for size in ("5GB", "10KB"):
        directory = tools.root / f"theirs-{kind}-{size}"
        model.save_pretrained(directory, max_shard_size=size)
        assert (directory / "model.safetensors.index.json").exists() == (size == "10KB")
        error = ((tools.logits(directory) - theirs).abs().max() / theirs.abs().max()).item()
        assert error <= BOUND, f"{directory}: logits differ by {error}"
        print(f"{directory.name}: largest difference {error:.1e}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        tools = Tools(sys.argv[1], sys.argv[2], pathlib.Path(directory))
        for kind in KINDS:
            check_runs(tools, kind)
            check_theirs(tools, kind)


if __name__ == "__main__":
    main()
