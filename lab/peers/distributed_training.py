#!/usr/bin/env python3
"""Runs pytorch_training.py as one of several processes over gloo, given by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

Each process takes every WORLD_SIZE-th sequence of a batch, as DistributedSampler assigns them, and pads its own sequences.
"""

import datetime

import torch
from pytorch_training import Trainer
from serving import serve
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

# How long a process waits for another that has failed.
TIMEOUT = datetime.timedelta(minutes=2)


def ddp(model):
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def fsdp2(model):
    """Wraps the model in FSDP units: the embeddings, each layer, and the rest, which is the head."""
    mesh = distributed.init_device_mesh("cpu", (distributed.get_world_size(),))
    for unit in (model.bert.embeddings, *model.bert.encoder.layer, model):
        fully_shard(unit, mesh=mesh)
    return model


class DistributedTrainer(Trainer):
    def load(self, wrapping, **settings):
        """Loads the model. `wrapping`: ddp or fsdp2."""
        distributed.init_process_group("gloo", timeout=TIMEOUT)
        self.rank, self.ranks = distributed.get_rank(), distributed.get_world_size()
        self.arrange = {"ddp": ddp, "fsdp2": fsdp2}[wrapping]
        super().load(**settings)
        torch.manual_seed(self.rank)  # each rank has its own dropout masks

    def step(self, batch, padding, compiled, autocast):
        """Returns the mean loss of this process. Losses and gradients of the batch are the means over all processes."""
        assert len(batch) % self.ranks == 0, "shares of equal size, or their mean is not the batch's"
        return super().step(batch[self.rank :: self.ranks], padding, compiled, autocast)

    def steps(self, batches, **how):
        distributed.barrier()
        return super().steps(batches, **how)


trainer = DistributedTrainer()
serve({"load": trainer.load, "steps": trainer.steps})
