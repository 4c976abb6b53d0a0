#!/usr/bin/env python3
"""Checks that Mylos and AutoTokenizer of transformers give the same ids for the recorded tokenizers.

    check_tokenizers.py MYLOS

Reads each folder of $MYLOS_REFERENCE/tokenizers (default ../shared/reference/tokenizers). Texts that are blank or have one token are no
samples of a language model, and are left out. The ids begin as the tokenizer begins a text.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import transformers
from transformers import AutoTokenizer

# transformers 5 builds stages of its own for Llama's class, whatever tokenizer.json says, and so changes texts that begin with spaces or
# have added tokens. Mylos follows the file, as transformers 4 does.
MAY_DIFFER = ["llama2-fast"] if transformers.__version__.startswith("5.") else []

REFERENCE = pathlib.Path(os.environ.get("MYLOS_REFERENCE", pathlib.Path(__file__).parents[2] / "../shared/reference"))


def our_ids(mylos, folder, texts, root):
    """Returns the ids of documents that a Llama with this tokenizer would read, without EOS."""
    model = root / folder.name
    shutil.copytree(folder, model)
    config = json.loads((REFERENCE / "llama/tiny/config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"vocab_size": 1 << 20, "max_position_embeddings": 1 << 17}))
    (root / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    output = root / f"{folder.name}.jsonl"
    words = [mylos, "prepare", "--model", model, "--data", root / "texts.jsonl", "--output", output, "--no-eos", "--max-length", "100000"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["input_ids"] for line in output.read_text().splitlines()]


def their_ids(folder, texts):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    plain = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
    special = tokenizer(texts[0]).input_ids
    begin = special[:1] if special[0] != plain[0][0] else []
    return [begin + ids for ids in plain]


def main(mylos):
    folders = sorted(path.parent for path in REFERENCE.glob("tokenizers/*/tokens.jsonl"))
    assert folders, f"{REFERENCE} has no tokenizers"
    failed = False
    with tempfile.TemporaryDirectory() as root:
        for folder in folders:
            rows = [json.loads(line) for line in (folder / "tokens.jsonl").read_text(encoding="utf-8").splitlines()]
            texts = [row["text"] for row in rows if len(row["ids"]) > 1 and row["text"].strip()]
            ours, theirs = our_ids(mylos, folder, texts, pathlib.Path(root)), their_ids(folder, texts)
            differing = [text for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]
            failed |= bool(differing) and folder.name not in MAY_DIFFER
            print(f"{folder.name}: {len(texts)} texts, {len(differing)} with other ids than transformers {transformers.__version__}")
            for text in differing[:3]:
                print(f"  {text!r}")
    return failed


sys.exit(main(sys.argv[1]))
