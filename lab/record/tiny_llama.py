#!/usr/bin/env python3
"""Records logits, losses, gradients and five AdamW steps of tiny Llamas -> tests/golden/reference/llama.

The files and their conventions: tests/golden/README.md. Needs PyPI: torch, transformers.
Recorded with torch 2.11.0, transformers 4.57.6.
"""

import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from common import GOLDEN
from training import learning_rate, make_adamw, parameters, train_step, write_tensors

OUTPUT = GOLDEN / "reference" / "llama"
SHAPE = {"hidden_size": 24, "intermediate_size": 40, "vocab_size": 61, "max_position_embeddings": 64, "rms_norm_eps": 1e-5}
MODELS = {
    "grouped": {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 1e6},
    # Of the five wavelengths in a head one is left as it is, one is in between, and three are scaled.
    "tied": {"num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 10, "rope_theta": 100.0,
             "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 32},
             "tie_word_embeddings": True},
}
SEED = 5  # with it, gradients in float differ from those in double by less than 2e-6, and parameters after the steps by less than 3e-7
LENGTHS = [3, 37, 2, 24, 11]
STEPS, WARM_UP, PEAK = 5, 2, 1e-3
NO_LABEL = -100


def make_model(shape, draw):
    """Returns a model with random weights, also of its normalizations, so that each affects the result."""
    config = LlamaConfig(**SHAPE, **shape, attn_implementation="eager")
    config.architectures = ["LlamaForCausalLM"]
    model = LlamaForCausalLM(config)
    for value in model.parameters():
        mean, spread = (1.0, 0.1) if value.dim() == 1 else (0.0, 0.2)
        value.data = mean + spread * torch.randn(value.shape, generator=draw)
    return model


def make_batch(draw):
    """Returns texts, padded on the right with token 0, which is also in the texts."""
    mask = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.int64)
    for sample, length in enumerate(LENGTHS):
        mask[sample, :length] = 1
    ids = torch.randint(SHAPE["vocab_size"], mask.shape, generator=draw) * mask
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, NO_LABEL)}


def token_losses(logits, labels):
    """Returns the loss (B, S) of each next token, told from the token before it; 0 where there is none."""
    following = torch.nn.functional.pad(labels[:, 1:], (0, 1), value=NO_LABEL)
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), following, ignore_index=NO_LABEL, reduction="none")


def mean_loss(model, batch):
    """Returns the mean loss over all predicted tokens of the batch."""
    return model(**batch).loss


def record(directory, shape):
    directory.mkdir(parents=True, exist_ok=True)
    draw = torch.Generator().manual_seed(SEED)
    model, batch = make_model(shape, draw), make_batch(draw)
    (directory / "config.json").write_text(json.dumps(model.config.to_diff_dict(), indent=1) + "\n", encoding="ascii")
    write_tensors(directory / "model.safetensors", parameters(model))
    write_tensors(directory / "batch.safetensors", batch)

    outputs = model(**batch)
    outputs.loss.backward()
    shown = batch["attention_mask"].unsqueeze(-1)
    write_tensors(directory / "outputs.safetensors",
                  {"logits": outputs.logits * shown, "token_losses": token_losses(outputs.logits, batch["labels"]),
                   "loss": outputs.loss.reshape(1)})
    write_tensors(directory / "gradients.safetensors", {name: value.grad for name, value in model.named_parameters()})

    optimizer = make_adamw(model)
    steps = [train_step(model, optimizer, mean_loss, batch, learning_rate(step, STEPS, WARM_UP, PEAK)) for step in range(STEPS)]
    (directory / "steps.json").write_text(json.dumps(steps, indent=1) + "\n", encoding="ascii")
    write_tensors(directory / f"after-{STEPS}-steps.safetensors", parameters(model))


def main():
    torch.set_num_threads(1)
    for name, shape in MODELS.items():
        record(OUTPUT / name, shape)


if __name__ == "__main__":
    main()
