"""A causal language model on texts that `mylos prepare` tokenised, in padded batches."""

import json

import torch
from features import FineTuning, padded_length
from transformers import AutoModelForCausalLM

IGNORED = -100  # the label of padding


class LanguageModeling(FineTuning):
    """A sample is the number of a line of `samples`."""

    def __init__(self, model, samples):
        with open(samples, encoding="utf-8") as file:
            self.ids = [json.loads(line)["input_ids"] for line in file]
        self.longest = max(map(len, self.ids))

    def load(self, model, dropout):
        """Returns the model of a directory. Llama has no dropout that could be replaced."""
        return AutoModelForCausalLM.from_pretrained(model, attn_implementation="sdpa")

    def collate(self, batch, padding):
        """Returns ids, mask and labels, padded on the right, as keyword arguments of the model."""
        rows = [self.ids[number] for number in batch]
        shape = (len(rows), padded_length([len(ids) for ids in rows], padding, self.longest))
        inputs = {"input_ids": torch.zeros(shape, dtype=torch.long), "attention_mask": torch.zeros(shape, dtype=torch.long),
                  "labels": torch.full(shape, IGNORED, dtype=torch.long)}
        for row, ids in enumerate(rows):
            inputs["input_ids"][row, : len(ids)] = inputs["labels"][row, : len(ids)] = torch.tensor(ids)
            inputs["attention_mask"][row, : len(ids)] = 1
        if inputs["attention_mask"].all():  # without a mask, PyTorch takes its fastest causal attention
            del inputs["attention_mask"]
        return (inputs,)

    def loss(self, model, inputs):
        return model(**inputs, use_cache=False).loss

    def count(self, batch):
        return sum(len(self.ids[number]) for number in batch)
