#!/usr/bin/env python3
"""Tokenises lines of text with Hugging Face's tokenizers (Rust) in one thread. Reads commands from stdin (see serving.py)."""

import json
import os
import pathlib
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from serving import serve
from tokenizers import BertWordPieceTokenizer, Tokenizer


class Tokenizing:
    def load(self, texts, vocabulary=None, file=None):
        """Reads the tokenizer of an uncased BERT's vocabulary, or a tokenizer.json, which then keeps no words from one text to the next."""
        self.tokenizer = Tokenizer.from_file(file) if file else BertWordPieceTokenizer(vocabulary, lowercase=True)
        if file and hasattr(self.tokenizer.model, "_resize_cache"):
            self.tokenizer.model._resize_cache(0)
        self.texts = [json.loads(line) for line in pathlib.Path(texts).read_text(encoding="utf-8").splitlines()]

    def encode(self):
        self.encoded = None  # freed before the timing begins
        begin = time.perf_counter()
        self.encoded = self.tokenizer.encode_batch(self.texts, add_special_tokens=False)
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, "texts": len(self.texts), "tokens": sum(map(len, self.encoded))}

    def ids(self, output):
        """Writes the ids of the last encoding, one JSON array per line."""
        lines = (json.dumps(encoding.ids, separators=(",", ":")) for encoding in self.encoded)
        pathlib.Path(output).write_text("".join(line + "\n" for line in lines), encoding="ascii")


tokenizing = Tokenizing()
serve({"load": tokenizing.load, "encode": tokenizing.encode, "ids": tokenizing.ids})
