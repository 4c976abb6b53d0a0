#!/usr/bin/env python3
"""Checks that transformers loads models of Mylos, and that Mylos reads models of transformers and of its predecessors.

    check_export.py EXPORT_MODEL

`EXPORT_MODEL SOURCE TARGET` reads the model directory SOURCE and writes TARGET. Logits of both must be equal bit for bit, because values
are only copied. The tiny model of tests/golden is checked too.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer, BertConfig, BertForPreTraining, BertForQuestionAnswering

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz"), "."]


def make_config():
    return BertConfig(vocab_size=len(VOCABULARY), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                      max_position_embeddings=32, initializer_range=0.3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def write_tokenizer(directory):
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (directory / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "tokenizer_class": "BertTokenizer"}))


def logits(model, inputs):
    with torch.no_grad():
        output = model.eval()(**inputs)
    return torch.stack([output.start_logits, output.end_logits])


def inputs_for(config):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, config.vocab_size, (3, 20), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 12:] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (torch.arange(20) > 7).long().expand(3, 20)}


def export(tool, source, target):
    subprocess.run([tool, source, target], check=True)


def check_equal(tool, name, source, root, expected, inputs):
    """Checks that transformers computes the logits `expected` with the model that Mylos exports from `source`."""
    target = root / (name + "-written")
    export(tool, source, target)
    written, info = AutoModelForQuestionAnswering.from_pretrained(target, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], (name, info)
    assert torch.equal(logits(written, inputs), expected), f"{name}: logits differ"
    before, after = AutoTokenizer.from_pretrained(source), AutoTokenizer.from_pretrained(target)
    text = ("what is B?", "a b. Cde \u00e9 \u4e00 end")
    assert before(*text) == after(*text), f"{name}: tokens differ"
    print(f"{name}: equal")


def rename(weights, *pairs):
    for old, new in pairs:
        weights = {key.replace(old, new): value for key, value in weights.items()}
    return weights


def check_made_models(tool, root):
    torch.manual_seed(1)
    model = BertForQuestionAnswering(make_config())
    inputs = inputs_for(model.config)
    source = root / "saved"
    model.save_pretrained(source)
    write_tokenizer(source)
    check_equal(tool, "saved", source, root, logits(model, inputs), inputs)

    weights = safetensors.torch.load_file(source / "model.safetensors")
    for name, change in {
        "legacy": lambda w: rename(w, ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),
        "float16": lambda w: {key: value.half() for key, value in w.items()},
        "bfloat16": lambda w: {key: value.bfloat16() for key, value in w.items()},
        "bare": lambda w: {key.removeprefix("bert."): value for key, value in w.items()},
    }.items():
        variant = root / name
        shutil.copytree(source, variant)
        changed = change(weights)
        safetensors.torch.save_file(changed, variant / "model.safetensors", metadata={"format": "pt"})
        oracle = BertForQuestionAnswering(make_config())
        oracle.load_state_dict({key: changed.get(key, value).float() for key, value in weights.items()})
        check_equal(tool, name, variant, root, logits(oracle, inputs), inputs)

    shards = root / "shards"
    shutil.copytree(source, shards)
    (shards / "model.safetensors").unlink()
    model.save_pretrained(shards, max_shard_size="10KB")
    assert len(list(shards.glob("model-*.safetensors"))) > 1
    check_equal(tool, "shards", shards, root, logits(model, inputs), inputs)


def check_pretraining_model(tool, root):
    """Checks that the encoder of a model with other heads is exported, and that the conversion command for pickles works."""
    model = BertForPreTraining(make_config())
    source = root / "pretraining"
    model.save_pretrained(source)
    write_tokenizer(source)
    weights = safetensors.torch.load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    refused = subprocess.run([tool, source, root / "pretraining-written"], capture_output=True, text=True)
    assert refused.returncode == 1 and "a Python pickle; convert it once" in refused.stderr, refused.stderr
    command = refused.stderr[refused.stderr.index("python3 -c") :].strip().replace("python3", sys.executable, 1)
    subprocess.run(command, shell=True, check=True, cwd=source)
    export(tool, source, root / "pretraining-written")
    written = safetensors.torch.load_file(root / "pretraining-written" / "model.safetensors")
    assert all(key.startswith(("bert.embeddings.", "bert.encoder.")) for key in written)
    assert all(torch.equal(value, weights[key]) for key, value in written.items())
    print("pretraining: encoder equal, converted from a pickle")


def check_reference(tool, root):
    """Checks that the exported tiny model gives its recorded logits."""
    reference = pathlib.Path(__file__).parents[1] / "golden/reference/tiny_bert"
    source = root / "tiny"
    shutil.copytree(reference, source)
    (source / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"t{i}" for i in range(56)]) + "\n")
    export(tool, source, root / "tiny-written")
    batch = safetensors.torch.load_file(reference / "batch.safetensors")
    expected = safetensors.torch.load_file(reference / "outputs.safetensors")
    mask = batch["attention_mask"].long()
    found = logits(AutoModelForQuestionAnswering.from_pretrained(root / "tiny-written"),
                   {key: batch[key].long() for key in ("input_ids", "token_type_ids", "attention_mask")}) * mask
    error = (found - torch.stack([expected["start_logits"], expected["end_logits"]])).abs().max().item()
    assert error < 1e-5, f"tiny: logits differ by {error}"
    print(f"tiny: largest difference {error:.1e}")


def main():
    tool = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        check_made_models(tool, root)
        check_pretraining_model(tool, root)
        check_reference(tool, root)


if __name__ == "__main__":
    main()
