#!/usr/bin/env python3
"""Checks that `mylos ask` gives the answers of transformers on the same model directory.

    check_ask.py MYLOS [MODEL_DIR...]

Without a MODEL_DIR, small models with random weights are made, whose answers depend on every token. transformers 4 has a
question-answering pipeline; answer, start and end (in code points of the context) and score are compared with it. transformers 5 has no
such pipeline. With both versions, the code of docs/getting-started.md is run too, on contexts of one window.
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
import transformers
from transformers import BertConfig, BertForQuestionAnswering

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789.,?!-'",
              *("##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"), "\u4e2d", "\u6587", "the", "is", "of"]

PARAGRAPH = ("The scheduler keeps a queue of jobs. When nodes become free, it starts the job with the highest priority, "
             "unless a smaller one can run before without delaying it; this is called backfilling. ")

CASES = [
    ("Slurm starts a job when its nodes are free. PBS does the same.", ["What starts a job?", "Who does the same?", "when?"]),
    ("Z\u00fcrich's caf\u00e9 \u2014 \u00abna\u00efve\u00bb, \u4e2d\u6587\u5b57 and \U0001F600 emoji.", ["Which caf\u00e9?", "\u4e2d\u6587 ?"]),
    ("  Leading spaces,\ttabs\nand lines. ", ["  what leads?"]),
    ("x", ["what is it?"]),
    (PARAGRAPH.strip(), ["What is called backfilling?", "What does the scheduler keep?"]),
    (PARAGRAPH * 12, ["What is called backfilling?", "Which job starts?"]),  # several windows
]


def make_model(directory, seed):
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        max_position_embeddings=512, initializer_range=0.3)
    BertForQuestionAnswering(config).save_pretrained(directory)
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}))
    return directory


def ask(mylos, model, context, questions, scratch):
    """Returns the objects that `mylos ask --json` prints, one per question."""
    file = scratch / "context.txt"
    file.write_bytes(context.encode("utf-8"))
    command = [mylos, "ask", "--model", model, "--context", file, "--json", *questions]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, (command, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def documented_code():
    """Returns the Python code of docs/getting-started.md, and its part after the lines that set directory, question and context."""
    page = (pathlib.Path(__file__).parents[2] / "docs/getting-started.md").read_text(encoding="utf-8")
    block = page[page.index("    import torch\n") :].split("\n`", 1)[0].split("\n##", 1)[0]
    lines = [line.removeprefix("    ") for line in block.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("tokenizer = "))
    return "\n".join(lines[:2]) + "\n" + "\n".join(lines[begin:])


def check_documented(mylos, model, scratch):
    code = compile(documented_code(), "docs/getting-started.md", "exec")
    asked = 0
    for context, questions in CASES[:-1]:
        for question, ours in zip(questions, ask(mylos, model, context, questions, scratch)):
            names = {"directory": str(model), "question": question, "context": context}
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
            assert names["answer"] == ours["answer"], f"{model}: {question!r}: {ours} is not {names['answer']!r}"
            asked += 1
    print(f"{model.name}: {asked} answers equal those of the documented code")


def check_pipeline(mylos, model, scratch):
    oracle = transformers.pipeline("question-answering", model=str(model), device="cpu")
    asked = 0
    for context, questions in CASES:
        answers = ask(mylos, model, context, questions, scratch)
        assert len(answers) == len(questions), (questions, answers)
        for question, ours in zip(questions, answers):
            theirs = oracle(question=question, context=context)
            same = all(ours[key] == theirs[key] for key in ("answer", "start", "end"))
            assert same and abs(ours["score"] - theirs["score"]) < 1e-4, f"{model}: {question!r}: {ours} is not {theirs}"
            asked += 1
    print(f"{model.name}: {asked} answers equal")


def main():
    warnings.simplefilter("ignore")
    mylos = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        models = [pathlib.Path(path) for path in sys.argv[2:]] or [make_model(scratch / f"random-{seed}", seed) for seed in range(5)]
        for model in models:
            check_documented(mylos, model, scratch)
            if transformers.__version__.startswith("4."):
                check_pipeline(mylos, model, scratch)


if __name__ == "__main__":
    main()
