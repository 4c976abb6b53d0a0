#!/usr/bin/env python3
"""Records the learning rates of transformers' schedules -> tests/golden/learning_rates.jsonl.

    lab/record/learning_rates.py

PyPI: torch, transformers.
"""

import math

import torch
from transformers import optimization

from common import write_lines

PEAK = 2e-3


def polynomial(optimizer, steps, warmup, power=1.0):
    return optimization.get_polynomial_decay_schedule_with_warmup(optimizer, warmup, steps, power=power)


def warmup_stable_decay(optimizer, steps, warmup, fraction):
    return optimization.get_wsd_schedule(optimizer, warmup, math.ceil(fraction * steps), num_training_steps=steps)


# Schedule, its function, steps, steps of warm-up, setting and its value.
CASES = [
    ("linear", optimization.get_linear_schedule_with_warmup, 20, 4, None, 0.0),
    ("cosine", optimization.get_cosine_schedule_with_warmup, 20, 4, None, 0.0),
    ("constant", lambda optimizer, warmup, steps: optimization.get_constant_schedule_with_warmup(optimizer, warmup), 20, 4, None, 0.0),
    ("polynomial", polynomial, 20, 4, "power", 1.0),
    ("polynomial", polynomial, 33, 0, "power", 2.5),
    ("warmup-stable-decay", warmup_stable_decay, 40, 4, "fraction", 0.1),
    ("warmup-stable-decay", warmup_stable_decay, 33, 5, "fraction", 0.45),
    ("warmup-stable-decay", warmup_stable_decay, 20, 4, "fraction", 0.8),
]


def record(schedule, function, steps, warmup, setting, value):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    more = [] if setting is None else [value]
    rates = function(optimizer, warmup, steps) if setting is None else function(optimizer, steps, warmup, *more)
    values = []
    for _ in range(steps):
        values.append(rates.get_last_lr()[0])
        optimizer.step()
        rates.step()
    return {"schedule": schedule, "peak": PEAK, "steps": steps, "warmup": warmup, "setting": value, "rates": values}


if __name__ == "__main__":
    write_lines("learning_rates.jsonl", [record(*case) for case in CASES])
