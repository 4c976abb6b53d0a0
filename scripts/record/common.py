"""What the recorders share: where the data and the golden files lie, Hugging Face's BERT tokenizer, digests.

The recorders need the PyPI packages named at the top of each; tests read only what they wrote to tests/golden.
"""

import json
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
VOCABULARY = GOLDEN / "vocabulary" / "bert-base-uncased.txt"
DATA = pathlib.Path(os.environ.get("MYLOS_DATA", ROOT / ".." / "shared" / "data"))


def data_file(name):
    """examples/... lies in the tree, anything else below DATA; tests/support/golden.hpp finds files in the same way."""
    return ROOT / name if name.startswith("examples/") else DATA / name


def load(name):
    return json.loads(data_file(name).read_text(encoding="utf-8"))


def write_lines(name, rows):
    """One JSON value a line, so that a change shows in a diff."""
    text = "".join(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n" for row in rows)
    (GOLDEN / name).write_text(text, encoding="ascii")


def fnv1a(values, digest=0xCBF29CE484222325):
    """FNV-1a over integers, each as 4 bytes, low byte first; tests/support/golden.hpp computes the same."""
    for value in values:
        for byte in (value & 0xFFFFFFFF).to_bytes(4, "little"):
            digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest


def bert_tokenizer(lower=True, strip_accents=None, chinese=True):
    """What BertTokenizerFast builds for the uncased vocabulary with these switches (PyPI: tokenizers)."""
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
