#!/usr/bin/env python3
"""Checks that PEFT loads an adapter of Mylos and computes with it what the merged model computes.

    check_lora.py BASE ADAPTER MERGED

Three directories: the base model, the adapter that a run wrote, and the model that Mylos merged from both. Run by hand: needs peft 0.17 or
later beside torch and transformers.
"""

import pathlib
import sys
import warnings

import torch
import transformers
from peft import PeftModel


def load(directory):
    directory = pathlib.Path(directory)
    name = transformers.AutoConfig.from_pretrained(directory).architectures[0]
    return getattr(transformers, name).from_pretrained(directory, dtype=torch.float32).eval()


def outputs(model, vocabulary):
    ids = torch.randint(5, vocabulary, (3, 16), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        values = model(input_ids=ids, attention_mask=torch.ones_like(ids))
    return torch.cat([value.flatten() for key, value in values.items() if key.endswith("logits")])


def main(base, adapter, merged):
    warnings.simplefilter("error", UserWarning)  # PEFT warns of keys and tensors that are missing or unknown
    model = PeftModel.from_pretrained(load(base), adapter).eval()
    vocabulary = model.config.vocab_size
    expected, plain, ours = (outputs(one, vocabulary) for one in (model, load(base), load(merged)))
    largest = expected.abs().max()
    difference = ((ours - expected).abs().max() / largest).item()
    effect = ((plain - expected).abs().max() / largest).item()
    assert effect > 1e-4, f"the adapter changes the logits by {effect:.1e} only"
    assert difference < 1e-5, f"logits of the merged model differ by {difference:.1e}"
    print(f"logits of PEFT and of the merged model differ by {difference:.1e}, and from the base's by {effect:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
