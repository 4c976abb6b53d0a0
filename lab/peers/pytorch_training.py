#!/usr/bin/env python3
"""Trains with PyTorch and transformers. Reads commands from stdin (see serving.py).

The models are BERT on SQuAD as run_qa fine-tunes it, Llama on texts, and ResNets on images. BERT and Llama use AdamW (fused, as in
transformers' Trainer) and gradients clipped to norm 1. The learning rate is constant.
"""

import importlib
import time

import torch
from serving import serve
from transformers import logging

logging.set_verbosity_error()

# task -> module and class; a module is imported when its task is requested.
TASKS = {"question-answering": ("features", "QuestionAnswering"), "language-modeling": ("texts", "LanguageModeling"),
         "image-classification": ("pictures", "ImageClassification")}


class Trainer:
    data_settings = None

    def load(self, model, threads, learning_rate, dropout=None, task="question-answering", adapter=None, **data):
        """Loads model and data. `dropout` replaces the model's; `adapter` is a directory of PEFT, which alone is trained; `data` are settings
        of the task. Attention is scaled_dot_product_attention."""
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        data_settings = (model, task, data)
        if self.data_settings != data_settings:  # otherwise only the model is loaded again, with another dropout
            module, name = TASKS[task]
            self.data_settings, self.task = data_settings, getattr(importlib.import_module(module), name)(model, **data)
        loaded = self.task.load(model, dropout)
        if adapter:
            loaded = importlib.import_module("peft").PeftModel.from_pretrained(loaded, adapter, is_trainable=True)
        self.model = self.arrange(loaded)
        self.model.train()
        self.optimizer = self.task.optimizer(self.trained(), learning_rate)
        self.losses = {False: self.loss}

    def trained(self):
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def arrange(self, model):
        """Returns the model to train; subclasses wrap it."""
        return model

    def loss(self, inputs, *targets):
        return self.task.loss(self.model, inputs, *targets)

    def step(self, batch, padding, compiled, autocast):
        inputs, *targets = self.task.collate(batch, padding)
        self.optimizer.zero_grad(set_to_none=True)
        if compiled and True not in self.losses:  # only on demand, because the compiler takes memory
            self.losses[True] = torch.compile(self.loss, dynamic=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = self.losses[compiled](inputs, *targets)
        loss.backward()
        self.task.clip(self.trained())
        self.optimizer.step()
        return loss.item()

    def steps(self, batches, padding=None, compiled=False, autocast=False):
        """Trains on `batches`, which are lists of samples. Returns seconds, loss and real tokens (or images) of each step."""
        seconds, losses = [], []
        for batch in batches:
            begin = time.perf_counter()
            losses.append(self.step(batch, padding, compiled, autocast))
            seconds.append(time.perf_counter() - begin)
        return {"seconds": seconds, "losses": losses, "counts": [self.task.count(batch) for batch in batches]}


if __name__ == "__main__":
    trainer = Trainer()
    serve({"load": trainer.load, "steps": trainer.steps})
