#!/usr/bin/env python3
"""Records the windows and labels of run_qa's prepare_train_features, without padding.

-> tests/golden/features.jsonl: one line per file of questions, with 8 digits of a digest for each of its windows;
-> tests/golden/features_odd.json: hand-written questions with small windows, with every window in full.
Needs PyPI: tokenizers, transformers. Recorded with tokenizers 0.23.3, transformers 5.23.0.
"""

import json

from transformers import BertTokenizerFast

from common import GOLDEN, VOCABULARY, data_file, fnv1a, write_lines
from labels import label


def nested_rows(path):
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = question["answers"]
                yield {
                    "id": question["id"],
                    "context": paragraph["context"],
                    "question": question["question"],
                    "answers": {
                        "text": [answer["text"] for answer in answers],
                        "answer_start": [answer["answer_start"] for answer in answers],
                    },
                }


def windows(tokenizer, row, max_length, stride):
    encoded = tokenizer(
        [row["question"].lstrip()],
        [row["context"]],
        truncation="only_second",
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    for window, ids in enumerate(encoded["input_ids"]):
        sequence_ids = encoded.sequence_ids(window)
        offsets = [list(pair) for pair in encoded["offset_mapping"][window]]
        start, end = label(offsets, sequence_ids, row["answers"])
        yield {
            "id": row["id"],
            "window": window,
            "input_ids": ids,
            "token_type_ids": encoded["token_type_ids"][window],
            "offsets": [pair if sequence == 1 else None for pair, sequence in zip(offsets, sequence_ids)],
            "start": start,
            "end": end,
        }


def digest(number, window):
    offsets = [value for pair in window["offsets"] for value in (pair or (-1, -1))]
    values = [number, window["window"], len(window["input_ids"]), *window["input_ids"], *window["token_type_ids"]]
    return f"{fnv1a([*values, *offsets, window['start'], window['end']]) & 0xFFFFFFFF:08x}"


def odd_rows():
    river = "The river Ångermanälven runs 460 km through Sweden — from Borgafjäll to the sea. " * 3
    place = lambda context, text: {"text": [text], "answer_start": [context.index(text)]}
    plain = "Alpha beta gamma delta epsilon zeta eta theta"
    emoji = "😀😀 The 東京 tower is 333 m tall; cafe\u0301 prices are ½ of Zürich's. 👍🏽 " + plain
    rows = [
        ("last-token", plain, "Which comes last?", place(plain, "theta")),
        ("first-token", plain, "Which comes first?", place(plain, "Alpha")),
        ("inside-token", plain, "Which part?", place(plain, "psilo")),
        ("whole", plain, "All of it?", place(plain, plain)),
        ("no-answer", plain, "None?", {"text": [], "answer_start": []}),
        ("two-answers", plain, "Which two?", {"text": ["beta", "gamma"], "answer_start": [6, 11]}),
        ("astral", emoji, "How tall is it?", place(emoji, "333 m")),
        ("combining", emoji, "Where are prices half?", place(emoji, "cafe\u0301")),
        ("long", river, "  \u00a0\tHow long is the river?", place(river, "460 km")),
        ("long-late", river, "Where does it end?", {"text": ["the sea"], "answer_start": [river.rindex("the sea")]}),
        ("long-question", river, "Which of the rivers of Sweden runs from the fells to the sea? ", place(river, "Sweden")),
        ("empty-context", "", "Anything?", {"text": [], "answer_start": []}),
        ("blank-context", " \u200b\n", "Anything there?", {"text": [], "answer_start": []}),
        ("empty-question", plain, " ", place(plain, "delta")),
        ("special-tokens", "before [SEP] after [CLS] end", "What is [MASK]?", place("before [SEP] after", "after")),
        ("unknown-word", "x" * 120 + " known", "What?", place("x" * 120 + " known", "known")),
    ]
    # Uses the last token of some window in turn, to cover the special case of the last context token.
    words = " ".join(f"word{number}" for number in range(30))
    rows += [(f"sweep-{n}", words, "Which word?", place(words, f"word{n}")) for n in range(10, 30)]
    return [dict(zip(("id", "context", "question", "answers"), row)) for row in rows]


def main():
    tokenizer = BertTokenizerFast(str(VOCABULARY))
    lines = []
    for name in ("examples/squad/train.json", "examples/squad/dev.json", "squad/v1.1/dev.json", "squad/v2.0/dev.json"):
        digests = [
            digest(number, window)
            for number, row in enumerate(nested_rows(data_file(name)))
            for window in windows(tokenizer, row, 384, 128)
        ]
        lines.append({"data": name, "windows": len(digests), "digests": "".join(digests)})
    write_lines("features.jsonl", lines)
    rows = odd_rows()
    odd = {"max_length": 40, "stride": 8, "rows": rows}
    odd["windows"] = [window for row in rows for window in windows(tokenizer, row, 40, 8)]
    (GOLDEN / "features_odd.json").write_text(json.dumps(odd, separators=(",", ":")) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
