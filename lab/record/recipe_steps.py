#!/usr/bin/env python3
"""Records steps of the optimizers and schedules that the recipes stand for -> tests/golden/recipe_steps.jsonl.

    lab/record/recipe_steps.py

PyPI: torch, transformers below 5 (for its AdamW, which one of the programs imports).
"""

import math

import torch
from transformers.optimization import AdamW as TransformersAdamW
from transformers.optimization import get_linear_schedule_with_warmup

from common import write_lines

STEPS = 100  # of the run; the tensors are a matrix, which every program decays, and a vector
SHAPES = ((2, 3), (4,))


def torch_adamw(rate, decay=0.01):
    return lambda parameters: torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)


def torch_sgd(rate, decay):
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=decay)


# Name: optimizer, steps of warm-up before a linear decay (None: constant), norm at which gradients are clipped (None: not at all).
RECIPES = {
    "lightning-fsdp-squad": (torch_adamw(3e-5), None, None),
    "lightning-ddp-squad": (torch_adamw(3e-5), None, None),
    "pauls-squad2": (lambda parameters: TransformersAdamW(parameters, lr=5e-5), None, None),
    "ncar-ddp": (torch_sgd(0.1, 1e-5), None, None),
    "ncar-fsdp": (torch_sgd(0.01, 5e-4), None, None),
    "chess-fsdp": (torch_adamw(1e-5), STEPS // 10, None),
    "run_qa": (torch_adamw(5e-5, 0.0), 0, 1.0),
    "run_clm": (torch_adamw(5e-5, 0.0), 0, 1.0),
}


def formula(function, count, scale):
    """Returns values that the test computes as well: function(1), function(2), ... times `scale`."""
    return torch.tensor([scale * function(i + 1) for i in range(count)], dtype=torch.float64)


def record(name):
    make, warmup, clip = RECIPES[name]
    parameters = [torch.nn.Parameter(formula(math.sin, math.prod(shape), 1.0).reshape(shape)) for shape in SHAPES]
    optimizer = make(parameters)
    schedule = None if warmup is None else get_linear_schedule_with_warmup(optimizer, warmup, STEPS)
    for step in range(STEPS):
        for parameter in parameters:
            gradient = formula(lambda i: math.cos(i * (step + 1)), parameter.numel(), 2.0)
            parameter.grad = gradient.reshape(parameter.shape)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        if schedule is not None:
            schedule.step()
    values = [value for parameter in parameters for value in parameter.detach().flatten().tolist()]
    return {"recipe": name, "steps": STEPS, "values": values}


if __name__ == "__main__":
    write_lines("recipe_steps.jsonl", [record(name) for name in RECIPES])
