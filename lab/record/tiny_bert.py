#!/usr/bin/env python3
"""Records logits, loss, gradients and five AdamW steps of a tiny BERT -> tests/golden/reference/tiny_bert.

The files and their conventions: tests/golden/README.md. Needs PyPI: torch, transformers.
Recorded with torch 2.11.0, transformers 4.57.6.
"""

import json

import torch

from common import GOLDEN
from training import learning_rate, make_adamw, make_model, parameters, question_answering_loss, train_step, write_tensors

OUTPUT = GOLDEN / "reference" / "tiny_bert"
SHAPE = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 40,
    "vocab_size": 61, "max_position_embeddings": 48, "type_vocab_size": 2,
}
LENGTHS = [32, 3, 17, 26, 11]
STEPS, WARM_UP, PEAK = 5, 2, 1e-3
# Runs with frozen tensors, and whether a tensor is frozen there: --freeze embeddings,layers.0-1 and body and layers.1,*query*.
FROZEN = {
    "lower-layers": lambda name: name.startswith(("bert.embeddings.", "bert.encoder.layer.0.", "bert.encoder.layer.1.")),
    "body": lambda name: name.startswith("bert."),
    "queries": lambda name: name.startswith("bert.encoder.layer.1.") or "query" in name,
}


def make_batch():
    draw = torch.Generator().manual_seed(3)
    samples, padded = len(LENGTHS), max(LENGTHS)
    mask = torch.zeros(samples, padded, dtype=torch.int64)
    types = torch.zeros_like(mask)
    for sample, length in enumerate(LENGTHS):
        mask[sample, :length] = 1
        types[sample, length // 3 : length] = 1
    label = lambda length: int(torch.randint(length, (1,), generator=draw))
    return {
        # Includes token 0, the padding, whose embedding gets no gradient in any case.
        "input_ids": torch.randint(SHAPE["vocab_size"], mask.shape, generator=draw) * mask,
        "token_type_ids": types,
        "attention_mask": mask,
        "start_positions": torch.tensor([label(length) for length in LENGTHS]),
        "end_positions": torch.tensor([label(length) for length in LENGTHS]),
    }


def record_steps(model, batch, output):
    """Writes the steps of AdamW, and the tensors afterwards. Frozen tensors get no gradient, and so no step."""
    output.mkdir(parents=True, exist_ok=True)
    optimizer = make_adamw(model)
    loss_of = lambda model, batch: question_answering_loss(model, batch)[0]
    steps = [train_step(model, optimizer, loss_of, batch, learning_rate(step, STEPS, WARM_UP, PEAK)) for step in range(STEPS)]
    (output / "steps.json").write_text(json.dumps(steps, indent=1) + "\n", encoding="ascii")
    write_tensors(output / f"after-{STEPS}-steps.safetensors", parameters(model))


def main():
    torch.set_num_threads(1)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    # Biases and LayerNorm parameters are random, too, so that each affects the result.
    model = make_model(SHAPE, seed=1, spread=0.1)
    (OUTPUT / "config.json").write_text(json.dumps(model.config.to_diff_dict(), indent=1) + "\n", encoding="ascii")
    write_tensors(OUTPUT / "model.safetensors", parameters(model))
    batch = make_batch()
    write_tensors(OUTPUT / "batch.safetensors", batch)

    loss, starts, ends = question_answering_loss(model, batch)
    loss.backward()
    shown = batch["attention_mask"]
    write_tensors(OUTPUT / "outputs.safetensors",
                  {"start_logits": starts * shown, "end_logits": ends * shown, "loss": loss.reshape(1)})
    write_tensors(OUTPUT / "gradients.safetensors", {name: parameter.grad for name, parameter in model.named_parameters()})

    record_steps(model, batch, OUTPUT)
    for run, is_frozen in FROZEN.items():
        model = make_model(SHAPE, seed=1, spread=0.1)
        for name, parameter in model.named_parameters():
            parameter.requires_grad = not is_frozen(name)
        record_steps(model, batch, OUTPUT / "frozen" / run)


if __name__ == "__main__":
    main()
