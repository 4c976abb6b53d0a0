#!/usr/bin/env python3
"""Trains BERT, Llama and ResNets on a GPU with PyTorch and transformers. Reads commands from stdin (see serving.py).

It works like pytorch_training.py, with autocast for 16 bits and a gradient scaler for half, on the given device. For BERT, "packed" means
sequences one after another without padding, with PyTorch's attention for sequences of different lengths.
"""

import contextlib
import statistics
import time

import torch
import transformers
from features import QuestionAnswering, padded_length, span_losses
from pytorch_training import Trainer
from serving import serve

TYPES = {"float": None, "bfloat16": torch.bfloat16, "half": torch.float16}


padded_attention = torch.nn.functional.scaled_dot_product_attention


def attention_of_lengths(query, key, value, starts, longest):
    """Computes flash attention within each sequence. Arrays are (tokens, heads, size). PyTorch has a public name for it since 2.10."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return torch.ops.aten._flash_attention_forward(query, key, value, starts, starts, longest, longest, 0.0, False, False)[0]
    return varlen_attn(query, key, value, starts, starts, longest, longest)


class Lengths:
    """The bounds of the packed sequences of the current batch."""

    starts, longest = None, 0


def attention_within(query, key, value, starts, longest):
    """Calls attention_of_lengths. On a CPU, where nothing is timed, it computes one sequence after another."""
    if query.is_cuda:
        return attention_of_lengths(query, key, value, starts, longest)
    bounds = starts.tolist()
    rows = [[part[a:b].transpose(0, 1) for part in (query, key, value)] for a, b in zip(bounds, bounds[1:])]
    return torch.cat([padded_attention(*parts).transpose(0, 1) for parts in rows])


def packed_attention(query, key, value, *_, **__):
    """Replaces scaled_dot_product_attention: attends within each sequence of one row of packed tokens, without dropout. Arrays are
    (1, heads, tokens, size)."""
    parts = (part[0].transpose(0, 1).contiguous() for part in (query, key, value))
    return attention_within(*parts, Lengths.starts, Lengths.longest).transpose(0, 1)[None]


CALLS = 10  # calls per timing
ASLEEP = 10**8  # clock cycles of a GPU, about 60 ms: longer than Python takes to queue the calls


def seconds_of(device, calls):
    """Returns the mean seconds of the calls, measured by the device's clock. A GPU sleeps until all calls are queued, so the time that
    Python takes to launch them does not count."""
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(ASLEEP)
        begin.record()
        for call in calls:
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1000 / len(calls)
    begin = time.perf_counter()
    for call in calls:
        call()
    return (time.perf_counter() - begin) / len(calls)


def attention(device, precision, lengths, heads, size, repeats):
    """Returns the median seconds of forward and backward pass of attention within sequences of these lengths, after two warm-up passes."""
    starts = torch.tensor([0, *lengths], device=device).cumsum(0).to(torch.int32)
    random = lambda: torch.randn(sum(lengths), heads, size, device=device, dtype=TYPES[precision] or torch.float)
    inputs, gradient = [random().requires_grad_() for _ in range(3)], random()
    forward = lambda: attention_within(*inputs, starts, max(lengths))
    times = {"forward": [], "backward": []}
    for _ in range(repeats + 2):
        times["forward"].append(seconds_of(device, [forward] * CALLS))
        outs = [forward() for _ in range(CALLS)]
        times["backward"].append(seconds_of(device, [lambda out=out: torch.autograd.grad(out, inputs, gradient) for out in outs]))
    return {part: statistics.median(found[2:]) for part, found in times.items()}


def pack(windows, width):
    """Packs all tokens into one row on the host. "slots" are the indices of the tokens in an array (sequences, width)."""
    lengths = [len(window[0]) for window in windows]
    bounds = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    row = lambda part: torch.tensor([value for window in windows for value in window[part]])[None]
    positions = torch.cat([torch.arange(length) for length in lengths])
    firsts = torch.repeat_interleave(torch.arange(len(lengths)) * width, torch.tensor(lengths))
    return {"input_ids": row(0), "token_type_ids": row(1), "position_ids": positions[None], "slots": firsts + positions, "bounds": bounds,
            "longest": max(lengths)}


def on_device(value, device):
    """Returns a tensor, or a dictionary with its tensors, on `device`."""
    if isinstance(value, dict):
        return {name: on_device(each, device) for name, each in value.items()}
    return value.to(device, non_blocking=True) if torch.is_tensor(value) else value


class GpuTrainer(Trainer):
    def load(self, device, precision, attention="padded", **settings):
        """Loads the model. `attention`: padded or packed."""
        self.device, self.type, self.packed = torch.device(device), TYPES[precision], attention == "packed"
        torch.backends.cuda.matmul.allow_tf32 = False
        if self.packed:
            torch.nn.functional.scaled_dot_product_attention = packed_attention
        super().load(**settings)
        if hasattr(self.task, "to"):
            self.task.to(self.device)
        self.scaler = torch.amp.GradScaler(self.device.type) if precision == "half" else None
        return {"torch": torch.__version__, "transformers": transformers.__version__, "cuda": torch.version.cuda}

    def arrange(self, model):
        return model.to(self.device)

    def autocast(self):
        return contextlib.nullcontext() if self.type is None else torch.autocast(self.device.type, dtype=self.type)

    def padded_loss(self, inputs, starts, ends):
        with self.autocast():
            output = self.model(**inputs)
        losses = span_losses(output.start_logits.float(), output.end_logits.float(), inputs["attention_mask"], starts, ends)
        return losses.mean()

    def packed_loss(self, inputs, starts, ends):
        """Returns the loss of sequences packed into one row by pack()."""
        Lengths.starts, Lengths.longest = inputs["bounds"], inputs["longest"]
        with self.autocast():
            output = self.model(input_ids=inputs["input_ids"], token_type_ids=inputs["token_type_ids"], position_ids=inputs["position_ids"])
        mask = inputs["attention_mask"]
        spread = [torch.zeros(mask.numel(), device=self.device).index_copy(0, inputs["slots"], logits.float()[0]).view(mask.shape)
                  for logits in (output.start_logits, output.end_logits)]
        return span_losses(*spread, mask, starts, ends).mean()

    def loss(self, inputs, *targets):
        if isinstance(self.task, QuestionAnswering):
            return (self.packed_loss if self.packed else self.padded_loss)(inputs, *targets)
        with self.autocast():
            return self.task.loss(self.model, inputs, *targets)

    def step(self, batch, padding, compiled):
        inputs, *targets = self.task.collate(batch, padding)
        if self.packed:
            windows = self.task.of(batch)
            inputs |= pack(windows, padded_length([len(window[0]) for window in windows], padding, self.task.max_length))
        inputs, *targets = (on_device(each, self.device) for each in (inputs, *targets))
        self.optimizer.zero_grad(set_to_none=True)
        if compiled and True not in self.losses:
            # Lengths vary only in batches of sequences that are padded or packed.
            self.losses[True] = torch.compile(self.loss, dynamic=True if isinstance(self.task, QuestionAnswering) else None)
        loss = self.losses[compiled](inputs, *targets)
        self.update(loss)
        return loss.item()

    def update(self, loss):
        scaler = self.scaler
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.unscale_(self.optimizer)
        self.task.clip(self.model.parameters())
        scaler.step(self.optimizer) if scaler else self.optimizer.step()
        if scaler:
            scaler.update()

    def steps(self, batches, padding, compiled=False):
        """Trains as Trainer does. The time of a step ends when its loss is on the host and the device is idle."""
        reply = {"seconds": [], "losses": [], "counts": [self.task.count(batch) for batch in batches]}
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for batch in batches:
            begin = time.perf_counter()
            reply["losses"].append(self.step(batch, padding, compiled))
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            reply["seconds"].append(time.perf_counter() - begin)
        if self.device.type == "cuda":
            free, total = torch.cuda.mem_get_info()
            reply |= {"memory": total - free, "peak_allocated": torch.cuda.max_memory_allocated()}
        return reply


if __name__ == "__main__":
    trainer = GpuTrainer()
    serve({"load": trainer.load, "steps": trainer.steps, "attention": attention})
