"""Reads windows, or makes those of run_qa's prepare_train_features, and makes padded batches of them."""

import json
import pathlib
import sys

import torch
from transformers import BertForQuestionAnswering, BertTokenizerFast

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "lab/record"))
from labels import label


def load_windows(model, questions, max_length, stride):
    """Returns {(question id, window index): (input ids, token type ids, start, end)} in the order of the file."""
    tokenizer = BertTokenizerFast.from_pretrained(model)
    windows = {}
    with open(questions, encoding="utf-8") as file:
        rows = json.load(file)["data"]
    for row in rows:
        encoded = tokenizer([row["question"].lstrip()], [row["context"]], truncation="only_second", max_length=max_length,
                            stride=stride, return_overflowing_tokens=True, return_offsets_mapping=True)
        for index, ids in enumerate(encoded["input_ids"]):
            start, end = label(encoded["offset_mapping"][index], encoded.sequence_ids(index), row["answers"])
            windows[row["id"], index] = (ids, encoded["token_type_ids"][index], start, end)
    return windows


def read_windows(path):
    """Returns what load_windows does, from a file of `mylos prepare`. Both programs then train on the same tokens: tokenizers 0.23.1 and
    0.23.2 split some words differently from earlier and later versions."""
    with open(path, encoding="utf-8") as file:
        rows = map(json.loads, file)
        return {(row["id"], row["window"]): (row["input_ids"], row["token_type_ids"], row["start"], row["end"]) for row in rows}


def padded_length(lengths, padding, max_length):
    """Returns the padded length of a batch. `padding`: "max", "longest", or a number whose multiple the length becomes."""
    if padding == "max":
        return max_length
    longest = max(lengths)
    return longest if padding == "longest" else min(-(-longest // padding) * padding, max_length)


def collate(batch, padding, max_length):
    """Returns the arrays of the batch as keyword arguments of the model, and its start and end positions."""
    length = padded_length([len(window[0]) for window in batch], padding, max_length)
    shape = (len(batch), length)
    inputs = {name: torch.zeros(shape, dtype=torch.long) for name in ("input_ids", "token_type_ids", "attention_mask")}
    for row, (ids, types, _, _) in enumerate(batch):
        inputs["input_ids"][row, : len(ids)] = torch.tensor(ids)
        inputs["token_type_ids"][row, : len(ids)] = torch.tensor(types)
        inputs["attention_mask"][row, : len(ids)] = 1
    return inputs, torch.tensor([window[2] for window in batch]), torch.tensor([window[3] for window in batch])


def span_losses(start_logits, end_logits, mask, starts, ends):
    """Returns the mean cross entropy of start and end for each sequence. Padding is masked, so a packed batch has the same loss."""
    hidden = mask == 0
    cross_entropy = torch.nn.functional.cross_entropy
    lowest = torch.finfo(start_logits.dtype).min
    start_losses = cross_entropy(start_logits.masked_fill(hidden, lowest), starts, reduction="none")
    return (start_losses + cross_entropy(end_logits.masked_fill(hidden, lowest), ends, reduction="none")) / 2


class FineTuning:
    """Optimizer and clipping as in transformers' Trainer by default."""

    def optimizer(self, parameters, learning_rate):
        return torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.0, fused=True)

    def clip(self, parameters):
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)


class QuestionAnswering(FineTuning):
    """BERT on SQuAD. A sample is [question id, window index]."""

    def __init__(self, model, windows, max_length):
        self.max_length = max_length
        self.windows = read_windows(windows)

    def load(self, model, dropout):
        """Returns the model of a directory. `dropout`, if given, replaces the model's."""
        changes = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        return BertForQuestionAnswering.from_pretrained(model, attn_implementation="sdpa", **changes)

    def of(self, batch):
        """Returns the windows of a batch."""
        return [self.windows[id, window] for id, window in batch]

    def collate(self, batch, padding):
        return collate(self.of(batch), padding, self.max_length)

    def loss(self, model, inputs, starts, ends):
        output = model(**inputs)
        return span_losses(output.start_logits, output.end_logits, inputs["attention_mask"], starts, ends).mean()

    def count(self, batch):
        return sum(len(ids) for ids, *_ in self.of(batch))
