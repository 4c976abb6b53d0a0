#!/usr/bin/env python3
"""Records the answers of transformers' question-answering pipeline for synthetic logits.

-> tests/golden/pipeline_answers.jsonl: one line per question with its context, the logits of its windows (at most 24 tokens,
overlap 6), and the pipeline's answer of at most 5 tokens before extension to whole words.
Needs PyPI: torch, transformers 4 (5 no longer has this pipeline). Recorded with torch 2.11.0, transformers 4.57.6.
"""

import pathlib
import random
import tempfile

import torch
from transformers import BertConfig, BertForQuestionAnswering, BertTokenizerFast, pipeline

from common import write_lines

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "##a", "##b", "##c", "##d", ".", "'", "\u4e2d"]
WORDS = ["a", "b", "ab", "bad", "cab", "dabad", "A", "B.", "c'd", "\u4e2d\u4e2d", "\u00c4b", "xyz", "\U0001F600", "d"]


def make_pipeline(recorded, generator):
    model = BertForQuestionAnswering(BertConfig(vocab_size=len(VOCABULARY), hidden_size=4, num_hidden_layers=1,
                                                num_attention_heads=1, intermediate_size=4))
    plain_forward = model.forward

    def forward(*args, **kwargs):
        output = plain_forward(*args, **kwargs)
        for name in ("start_logits", "end_logits"):
            shape = output[name].shape
            output[name] = torch.tensor([[round(generator.gauss(0, 2), 2) for _ in range(shape[1])]])
        recorded.append({"start": output["start_logits"][0].tolist(), "end": output["end_logits"][0].tolist()})
        return output

    forward.__signature__ = __import__("inspect").signature(plain_forward)
    model.forward = forward
    with tempfile.TemporaryDirectory() as directory:
        vocabulary = pathlib.Path(directory) / "vocab.txt"
        vocabulary.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
        tokenizer = BertTokenizerFast(str(vocabulary))
    return pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")


def main():
    generator = random.Random(11)
    recorded = []
    oracle = make_pipeline(recorded, generator)
    rows = []
    for case in range(60):
        question = " ".join(generator.choices(WORDS, k=generator.randint(1, 4)))
        context = " ".join(generator.choices(WORDS, k=generator.choice([1, 2, 8, 20, 40])))
        recorded.clear()
        answer = oracle(question=question, context=context, max_seq_len=24, doc_stride=6, max_answer_len=5)
        windows = [{name: [round(value, 2) for value in window[name]] for name in window} for window in recorded]
        rows.append({"question": question, "context": context, "windows": windows, **answer})
    write_lines("pipeline_answers.jsonl", rows)


if __name__ == "__main__":
    main()
