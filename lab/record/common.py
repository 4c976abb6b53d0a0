"""Shared by the recorders: locations of data and golden files, Hugging Face's BERT tokenizer, digests, and interrupted runs.

Each recorder names the PyPI packages that it needs at its top. Tests read only the files that recorders wrote to tests/golden.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
VOCABULARY = GOLDEN / "vocabulary" / "bert-base-uncased.txt"
DATA = pathlib.Path(os.environ.get("MYLOS_DATA", ROOT / ".." / "shared" / "data"))


def data_file(name):
    """Returns the path of a file: examples/... is in the tree, others are below DATA; as in tests/support/golden.hpp."""
    return ROOT / name if name.startswith("examples/") else DATA / name


def load(name):
    return json.loads(data_file(name).read_text(encoding="utf-8"))


def write_lines(name, rows):
    """Writes one JSON value per line, so that changes are visible in a diff."""
    text = "".join(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n" for row in rows)
    (GOLDEN / name).write_text(text, encoding="ascii")


def fnv1a(values, digest=0xCBF29CE484222325):
    """Returns the FNV-1a hash of integers, each as 4 bytes, low byte first; as in tests/support/golden.hpp."""
    for value in values:
        for byte in (value & 0xFFFFFFFF).to_bytes(4, "little"):
            digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest


def interrupt_run(command, run, lines):
    """Starts a command in the directory above `run`, its output, and sends SIGUSR1 when metrics.jsonl has this many lines. Returns
    whether the signal ended it, and not the last step before."""
    metrics = run / "metrics.jsonl"
    shutil.rmtree(run, ignore_errors=True)
    process = subprocess.Popen(command, cwd=run.parent)
    while process.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= lines):
        time.sleep(0.0002)
    process.send_signal(signal.SIGUSR1)
    return process.wait() == 85


def bert_tokenizer(lower=True, strip_accents=None, chinese=True):
    """Returns the tokenizer that BertTokenizerFast builds for the uncased vocabulary with these switches (PyPI: tokenizers)."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    lines = VOCABULARY.read_text(encoding="utf-8").splitlines()
    vocabulary = {token: index for index, token in enumerate(lines)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.add_special_tokens(["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lower
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer
