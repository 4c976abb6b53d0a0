#!/usr/bin/env python3
"""Records steps of Lion (Chen et al. 2023) by a loop in PyTorch -> tests/golden/lion_steps.jsonl.

    lab/record/lion_steps.py

PyPI: torch.
"""

import math

import torch

from common import write_lines

STEPS, COUNT = 100, 10


def formula(function, scale):
    """Returns values that the test computes as well: function(1), function(2), ... times `scale`."""
    return torch.tensor([scale * function(i + 1) for i in range(COUNT)], dtype=torch.float64)


def record(rate, beta1, beta2, decay):
    weight, moment = formula(math.sin, 1.0), torch.zeros(COUNT, dtype=torch.float64)
    for step in range(STEPS):
        gradient = formula(lambda i: math.cos(i * (step + 1)), 2.0)
        direction = torch.sign(beta1 * moment + (1 - beta1) * gradient)
        weight -= rate * (direction + decay * weight)
        moment = beta2 * moment + (1 - beta2) * gradient
    return {"learning_rate": rate, "beta1": beta1, "beta2": beta2, "weight_decay": decay, "steps": STEPS,
            "values": weight.tolist(), "moment": moment.tolist()}


if __name__ == "__main__":
    write_lines("lion_steps.jsonl", [record(1e-2, 0.9, 0.99, 0.0), record(1e-2, 0.9, 0.99, 0.1), record(3e-3, 0.5, 0.7, 1.0)])
