#!/usr/bin/env python3
"""PyTorch and transformers fine-tuning BERT on SQuAD, as run_qa does; commands come on stdin (see serving.py).

AdamW (fused, as transformers' Trainer takes it), constant learning rate, gradients clipped to norm 1.
"""

import time

import torch
from features import collate, load_windows, span_losses
from serving import serve
from transformers import BertForQuestionAnswering, logging

logging.set_verbosity_error()


class Trainer:
    told = None

    def load(self, model, questions, max_length, stride, threads, learning_rate, dropout=None):
        """`dropout` replaces the model's. Attention is PyTorch's scaled_dot_product_attention."""
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        changes = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        self.max_length = max_length
        told = (model, questions, max_length, stride)
        if self.told != told:  # else it is loaded anew with another dropout
            self.told, self.windows = told, load_windows(*told)
        self.model = self.arrange(BertForQuestionAnswering.from_pretrained(model, attn_implementation="sdpa", **changes))
        self.model.train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=learning_rate, weight_decay=0.0, fused=True)
        self.losses = {False: self.loss}

    def arrange(self, model):
        """What takes the model's place: itself."""
        return model

    def loss(self, inputs, starts, ends):
        output = self.model(**inputs)
        return span_losses(output.start_logits, output.end_logits, inputs["attention_mask"], starts, ends).mean()

    def step(self, batch, padding, compiled):
        inputs, starts, ends = collate([self.windows[id, window] for id, window in batch], padding, self.max_length)
        self.optimizer.zero_grad(set_to_none=True)
        if compiled and True not in self.losses:  # not before: the compiler takes memory of its own
            self.losses[True] = torch.compile(self.loss, dynamic=True)
        loss = self.losses[compiled](inputs, starts, ends)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def steps(self, batches, padding, compiled=False):
        """Trains on `batches`, lists of [question id, window index]; seconds, loss and real tokens of each step."""
        seconds, losses = [], []
        for batch in batches:
            begin = time.perf_counter()
            losses.append(self.step(batch, padding, compiled))
            seconds.append(time.perf_counter() - begin)
        tokens = [sum(len(self.windows[id, window][0]) for id, window in batch) for batch in batches]
        return {"seconds": seconds, "losses": losses, "tokens": tokens}


if __name__ == "__main__":
    trainer = Trainer()
    serve({"load": trainer.load, "steps": trainer.steps})
