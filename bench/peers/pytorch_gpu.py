#!/usr/bin/env python3
"""PyTorch and transformers fine-tuning BERT on SQuAD on a GPU, at a precision; commands come on stdin (see serving.py).

As pytorch_training.py, with autocast for 16 bits (and a gradient scaler for half), on the device that is named.
"packed": sequences one after another without padding, by PyTorch's attention over sequences of different lengths.
"""

import contextlib
import time

import torch
import transformers
from features import collate, span_losses
from pytorch_training import Trainer
from serving import serve

TYPES = {"float": None, "bfloat16": torch.bfloat16, "half": torch.float16}


padded_attention = torch.nn.functional.scaled_dot_product_attention


class PackedAttention:
    """Takes scaled_dot_product_attention's place: within each sequence of one row of packed tokens, without dropout."""

    def __init__(self):
        self.starts, self.longest = None, 0

    def __call__(self, query, key, value, *_, **__):
        """Arrays are (1, heads, tokens, size)."""
        query, key, value = (part[0].transpose(0, 1) for part in (query, key, value))
        if query.is_cuda:
            from torch.nn.attention.varlen import varlen_attn

            arrays = (part.contiguous() for part in (query, key, value))
            out = varlen_attn(*arrays, self.starts, self.starts, self.longest, self.longest)
        else:  # where nothing is timed: one after another
            bounds = self.starts.tolist()
            rows = [[part[a:b].transpose(0, 1) for part in (query, key, value)] for a, b in zip(bounds, bounds[1:])]
            out = torch.cat([padded_attention(*parts).transpose(0, 1) for parts in rows])
        return out.transpose(0, 1)[None]


class GpuTrainer(Trainer):
    def load(self, device, precision, attention="padded", **settings):
        """`attention`: padded or packed."""
        self.device, self.type, self.packed = torch.device(device), TYPES[precision], attention == "packed"
        torch.backends.cuda.matmul.allow_tf32 = False
        if self.packed:
            torch.nn.functional.scaled_dot_product_attention = self.attention = PackedAttention()
        super().load(**settings)
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
        """The same sequences in one row."""
        present = inputs["attention_mask"].bool()
        lengths = present.sum(1)
        bounds = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
        positions = torch.arange(present.shape[1], device=self.device).expand_as(present)[present]
        self.attention.starts, self.attention.longest = bounds, int(lengths.max())
        with self.autocast():
            output = self.model(input_ids=inputs["input_ids"][present][None], token_type_ids=inputs["token_type_ids"][present][None],
                                position_ids=positions[None])
        spread = [torch.zeros(present.shape, device=self.device).masked_scatter(present, logits.float()[0])
                  for logits in (output.start_logits, output.end_logits)]
        return span_losses(*spread, inputs["attention_mask"], starts, ends).mean()

    def loss(self, inputs, starts, ends):
        return (self.packed_loss if self.packed else self.padded_loss)(inputs, starts, ends)

    def step(self, batch, padding, compiled):
        inputs, starts, ends = collate([self.windows[id, window] for id, window in batch], padding, self.max_length)
        inputs = {name: array.to(self.device, non_blocking=True) for name, array in inputs.items()}
        starts, ends = starts.to(self.device), ends.to(self.device)
        self.optimizer.zero_grad(set_to_none=True)
        if compiled and True not in self.losses:
            self.losses[True] = torch.compile(self.loss, dynamic=True)
        loss = self.losses[compiled](inputs, starts, ends)
        self.update(loss)
        return loss.item()

    def update(self, loss):
        scaler = self.scaler
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        scaler.step(self.optimizer) if scaler else self.optimizer.step()
        if scaler:
            scaler.update()

    def steps(self, batches, padding, compiled=False):
        """As Trainer's; each step's time ends when its loss is here, and the device has no more to do."""
        reply = {"seconds": [], "losses": [], "tokens": [sum(len(self.windows[id, window][0]) for id, window in batch) for batch in batches]}
        for batch in batches:
            begin = time.perf_counter()
            reply["losses"].append(self.step(batch, padding, compiled))
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            reply["seconds"].append(time.perf_counter() - begin)
        if self.device.type == "cuda":
            reply["peak_memory"] = torch.cuda.max_memory_allocated()
        return reply


if __name__ == "__main__":
    trainer = GpuTrainer()
    serve({"load": trainer.load, "steps": trainer.steps})
