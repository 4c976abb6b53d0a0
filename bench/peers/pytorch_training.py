#!/usr/bin/env python3
"""PyTorch and transformers in training; commands come on stdin (see serving.py): BERT on SQuAD, as run_qa fine-tunes it, or
Llama on texts: AdamW (fused, as transformers' Trainer takes it), gradients clipped to norm 1; or ResNets on images. The learning
rate is constant.
"""

import importlib
import time

import torch
from serving import serve
from transformers import logging

logging.set_verbosity_error()

# task -> module and class; a module is loaded when its task is asked for.
TASKS = {"question-answering": ("features", "QuestionAnswering"), "language-modeling": ("texts", "LanguageModeling"),
         "image-classification": ("pictures", "ImageClassification")}


class Trainer:
    told = None

    def load(self, model, threads, learning_rate, dropout=None, task="question-answering", **data):
        """`dropout` replaces the model's, `data` is the task's. Attention is PyTorch's scaled_dot_product_attention."""
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        told = (model, task, data)
        if self.told != told:  # else it is loaded anew with another dropout
            module, name = TASKS[task]
            self.told, self.task = told, getattr(importlib.import_module(module), name)(model, **data)
        self.model = self.arrange(self.task.load(model, dropout))
        self.model.train()
        self.optimizer = self.task.optimizer(self.model.parameters(), learning_rate)
        self.losses = {False: self.loss}

    def arrange(self, model):
        """What takes the model's place: itself."""
        return model

    def loss(self, inputs, *targets):
        return self.task.loss(self.model, inputs, *targets)

    def step(self, batch, padding, compiled, autocast):
        inputs, *targets = self.task.collate(batch, padding)
        self.optimizer.zero_grad(set_to_none=True)
        if compiled and True not in self.losses:  # not before: the compiler takes memory of its own
            self.losses[True] = torch.compile(self.loss, dynamic=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = self.losses[compiled](inputs, *targets)
        loss.backward()
        self.task.clip(self.model.parameters())
        self.optimizer.step()
        return loss.item()

    def steps(self, batches, padding=None, compiled=False, autocast=False):
        """Trains on `batches`, lists of what the task calls its samples; seconds, loss and real tokens (or images) of each step."""
        seconds, losses = [], []
        for batch in batches:
            begin = time.perf_counter()
            losses.append(self.step(batch, padding, compiled, autocast))
            seconds.append(time.perf_counter() - begin)
        return {"seconds": seconds, "losses": losses, "counts": [self.task.count(batch) for batch in batches]}


if __name__ == "__main__":
    trainer = Trainer()
    serve({"load": trainer.load, "steps": trainer.steps})
