#!/usr/bin/env python3
"""Records a fine-tuning run of a small BERT on examples/squad and its answers -> tests/golden/reference/examples_run.

The files and their conventions: tests/golden/README.md. Needs PyPI: torch, transformers; Python 3.11 (see metrics.py).
Recorded with torch 2.11.0, transformers 4.57.6.
"""

import json

import torch
from safetensors.torch import save_file
from transformers import BertTokenizerFast

from answers import answer
from common import GOLDEN, ROOT, VOCABULARY, write_lines
from features import nested_rows, windows
from metrics import score_v2
from training import learning_rate, make_adamw, make_model, question_answering_loss, train_step

NAME = "reference/examples_run"
OUTPUT = GOLDEN / NAME
SQUAD = ROOT / "examples" / "squad"
MAX_LENGTH, STRIDE = 128, 32
STEPS, WARM_UP, PEAK, BATCH = 300, 30, 2e-3, 8
NULL_THRESHOLD = 6.0  # with it, a model this uncertain answers a third of the questions; with 0, none
SHAPE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": MAX_LENGTH, "type_vocab_size": 2,
}


def write_vocabulary(rows):
    """Reduces the uncased vocabulary to the pieces of these texts, which are therefore still tokenized in the same way."""
    whole = BertTokenizerFast(str(VOCABULARY))
    used = {token for row in rows for text in (row["question"], row["context"]) for token in whole.tokenize(text)}
    used |= {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    kept = [token for token in VOCABULARY.read_text(encoding="utf-8").splitlines() if token in used]
    (OUTPUT / "vocab.txt").write_text("".join(token + "\n" for token in kept), encoding="utf-8")
    (OUTPUT / "tokenizer_config.json").write_text('{"do_lower_case": true}\n', encoding="ascii")
    return BertTokenizerFast(str(OUTPUT / "vocab.txt"))


def padded(features):
    """Returns a batch of windows, padded to the longest."""
    longest = max(len(feature["input_ids"]) for feature in features)
    fill = lambda values: torch.tensor([list(value) + [0] * (longest - len(value)) for value in values])
    return {
        "input_ids": fill(feature["input_ids"] for feature in features),
        "token_type_ids": fill(feature["token_type_ids"] for feature in features),
        "attention_mask": fill([1] * len(feature["input_ids"]) for feature in features),
        "start_positions": torch.tensor([feature["start"] for feature in features]),
        "end_positions": torch.tensor([feature["end"] for feature in features]),
    }


def draw_order(count):
    """Returns the window numbers of each step, in complete shuffled passes."""
    draw = torch.Generator().manual_seed(5)
    numbers = []
    while len(numbers) < STEPS * BATCH:
        numbers += torch.randperm(count, generator=draw).tolist()
    return [numbers[step * BATCH : (step + 1) * BATCH] for step in range(STEPS)]


def train(model, features, order):
    """Yields the values of each step in the recorded form."""
    optimizer = make_adamw(model)
    loss_of = lambda model, batch: question_answering_loss(model, batch)[0]
    for step, numbers in enumerate(order):
        batch = padded([features[number] for number in numbers])
        row = train_step(model, optimizer, loss_of, batch, learning_rate(step, STEPS, WARM_UP, PEAK))
        yield row | {"tokens": int(batch["attention_mask"].sum())}


def judged(feature, model):
    """Returns the window as an argument for answers.answer(): its logits and the offsets of its context tokens."""
    with torch.no_grad():
        _, starts, ends = question_answering_loss(model, padded([feature]))
    shown = [offset for offset in feature["offsets"] if offset is not None]
    position = feature["offsets"].index(shown[0])
    return {"start": starts[0].numpy(), "end": ends[0].numpy(), "position": position, "offsets": shown}


def predictions(model, tokenizer, rows):
    found = {}
    for row in rows:
        cut = [judged(feature, model) for feature in windows(tokenizer, row, MAX_LENGTH, STRIDE)]
        found[row["id"]], _, _ = answer(row["context"], cut, v2=True, n_best=20, max_length=30, threshold=NULL_THRESHOLD)
    return found


def score(rows, found):
    questions = [{"id": row["id"], "answers": [{"text": text} for text in row["answers"]["text"]]} for row in rows]
    return score_v2(questions, found)


def main():
    torch.set_num_threads(1)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows, dev_rows = list(nested_rows(SQUAD / "train.json")), list(nested_rows(SQUAD / "dev.json"))
    tokenizer = write_vocabulary(rows + dev_rows)
    model = make_model({**SHAPE, "vocab_size": len(tokenizer)}, seed=2, spread=0.05)
    (OUTPUT / "config.json").write_text(json.dumps(model.config.to_diff_dict(), indent=1) + "\n", encoding="ascii")
    save_file({name: value.data.clone() for name, value in model.named_parameters()}, OUTPUT / "model.safetensors")

    features = [feature for row in rows for feature in windows(tokenizer, row, MAX_LENGTH, STRIDE)]
    order = draw_order(len(features))
    named = [[[features[number]["id"], features[number]["window"]] for number in numbers] for numbers in order]
    write_lines(f"{NAME}/order.jsonl", named)
    write_lines(f"{NAME}/steps.jsonl", train(model, features, order))
    found = predictions(model, tokenizer, dev_rows)
    (OUTPUT / "predictions.json").write_text(json.dumps(found, indent=0) + "\n", encoding="ascii")
    (OUTPUT / "results.json").write_text(score(dev_rows, found) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
