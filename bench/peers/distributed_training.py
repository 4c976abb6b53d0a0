#!/usr/bin/env python3
"""pytorch_training.py as one of several processes over gloo; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which.

Each takes every WORLD_SIZE-th sequence of a batch, as DistributedSampler deals them out, and pads its own share.
"""

import datetime

import torch
from pytorch_training import Trainer
from serving import serve
from torch import distributed
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

# What a process waits for one that has failed.
TIMEOUT = datetime.timedelta(minutes=2)


def ddp(model):
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def fsdp2(model):
    """A unit for the embeddings, for each layer, and for what is left, the head."""
    mesh = distributed.init_device_mesh("cpu", (distributed.get_world_size(),))
    for unit in (model.bert.embeddings, *model.bert.encoder.layer, model):
        fully_shard(unit, mesh=mesh)
    return model


class DistributedTrainer(Trainer):
    def load(self, wrapping, **settings):
        """`wrapping`: ddp or fsdp2."""
        distributed.init_process_group("gloo", timeout=TIMEOUT)
        self.rank, self.ranks = distributed.get_rank(), distributed.get_world_size()
        self.arrange = {"ddp": ddp, "fsdp2": fsdp2}[wrapping]
        super().load(**settings)
        torch.manual_seed(self.rank)  # dropout of its own

    def step(self, batch, padding, compiled, autocast):
        """This process' mean loss; the batch's is the mean of all processes, as their gradients are."""
        assert len(batch) % self.ranks == 0, "shares of equal size, or their mean is not the batch's"
        return super().step(batch[self.rank :: self.ranks], padding, compiled, autocast)

    def steps(self, batches, **how):
        distributed.barrier()
        return super().steps(batches, **how)


trainer = DistributedTrainer()
serve({"load": trainer.load, "steps": trainer.steps})
