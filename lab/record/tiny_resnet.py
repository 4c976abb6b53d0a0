#!/usr/bin/env python3
"""Records logits, losses, gradients, running statistics and five SGD steps of tiny ResNets -> tests/golden/reference/resnet.

The files and their conventions: tests/golden/README.md. Needs PyPI: torch, transformers.
Recorded with torch 2.11.0, transformers 4.57.6.
"""

import json

import torch
from transformers import ResNetConfig, ResNetForImageClassification

from common import GOLDEN
from training import learning_rate, write_tensors

OUTPUT = GOLDEN / "reference" / "resnet"
# A seed for which gradients in float differ from those in double by less than 4e-6; images: (number, channels, height, width).
MODELS = {
    "bottleneck": (11, (5, 3, 29, 23), {"embedding_size": 6, "hidden_sizes": [8, 12], "depths": [2, 2], "num_labels": 5}),
    "bottleneck-early": (2, (7, 1, 45, 50), {"embedding_size": 8, "hidden_sizes": [8, 16, 20], "depths": [1, 2, 1], "num_labels": 3,
                                             "downsample_in_first_stage": True, "downsample_in_bottleneck": True}),
}
STEPS, PEAK = 5, 0.1


def make_model(channels, shape, draw):
    """Returns a model with random weights, biases and running statistics, so that each affects the result."""
    config = ResNetConfig(num_channels=channels, layer_type="bottleneck", **shape)
    config.architectures = ["ResNetForImageClassification"]
    model = ResNetForImageClassification(config)
    for name, value in model.named_parameters():
        spread = (2 / value[0].numel()) ** 0.5 if value.dim() > 1 else 0.1
        mean = 1.0 if value.dim() == 1 and name.endswith("weight") else 0.0
        value.data = mean + spread * torch.randn(value.shape, generator=draw)
    for name, value in model.named_buffers():
        if name.endswith("running_mean"):
            value.copy_(0.2 * torch.randn(value.shape, generator=draw))
        elif name.endswith("running_var"):
            value.copy_(0.5 + torch.rand(value.shape, generator=draw))
    return model


def make_batch(shape, labels, draw):
    """Returns labelled images, each with its own brightness, contrast and slope."""
    count, channels, height, width = shape
    each = lambda: torch.randn((count, channels, 1, 1), generator=draw)
    slopes = each() * torch.linspace(-1, 1, width) + each() * torch.linspace(-1, 1, height).reshape(-1, 1)
    pixels = 0.5 * each() + slopes + (0.5 + each().abs()) * torch.randn(shape, generator=draw)
    return {"pixel_values": pixels, "labels": torch.randint(labels, (count,), generator=draw)}


def make_sgd(model):
    parameters = list(model.parameters())
    groups = [{"params": [value for value in parameters if value.dim() > 1], "weight_decay": 5e-4},
              {"params": [value for value in parameters if value.dim() == 1], "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=PEAK, momentum=0.9)


def train_step(model, optimizer, batch, rate):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(value.grad) for value in model.parameters()]))
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return {"loss": loss.item(), "gradient_norm": norm.item(), "learning_rate": rate}


def record(directory, images, shape, seed):
    directory.mkdir(parents=True, exist_ok=True)
    draw = torch.Generator().manual_seed(seed)
    model, batch = make_model(images[1], shape, draw), make_batch(images, shape["num_labels"], draw)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    (directory / "config.json").write_text(json.dumps(model.config.to_diff_dict(), indent=1) + "\n", encoding="ascii")
    write_tensors(directory / "model.safetensors", start)
    write_tensors(directory / "batch.safetensors", batch)

    with torch.no_grad():
        evaluated = model.eval()(**batch)
    trained = model.train()(**batch)
    smoothed = torch.nn.functional.cross_entropy(trained.logits, batch["labels"], label_smoothing=0.1)
    trained.loss.backward()
    write_tensors(directory / "outputs.safetensors",
                  {"logits": trained.logits, "loss": trained.loss.reshape(1), "loss_smoothed": smoothed.reshape(1),
                   "eval_logits": evaluated.logits, "eval_loss": evaluated.loss.reshape(1)})
    write_tensors(directory / "gradients.safetensors", {name: value.grad for name, value in model.named_parameters()})
    write_tensors(directory / "after-1-pass.safetensors",
                  {name: value for name, value in model.named_buffers() if "running" in name or "tracked" in name})

    model.load_state_dict(start)
    optimizer = make_sgd(model)
    steps = [{"step": step + 1, **train_step(model, optimizer, batch, learning_rate(step, STEPS, 0, PEAK))} for step in range(STEPS)]
    (directory / "steps.json").write_text(json.dumps(steps, indent=1) + "\n", encoding="ascii")
    write_tensors(directory / f"after-{STEPS}-steps.safetensors", model.state_dict())


def main():
    torch.set_num_threads(1)
    for name, (seed, images, shape) in MODELS.items():
        record(OUTPUT / name, images, shape, seed)


if __name__ == "__main__":
    main()
