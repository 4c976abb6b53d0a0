"""Regenerates the tiny BERT beside this file: make_model.py [DIRECTORY]. The result is always the same, byte for byte."""

import collections
import json
import pathlib
import random
import re
import string
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
WORDS = 800
HIDDEN, HEADS, LAYERS, FEED_FORWARD, POSITIONS = 32, 2, 2, 64, 128


def vocabulary():
    """Returns the special tokens, every character as a word and as a continuation, and the most common words of the training data."""
    document = json.loads((HERE.parent / "squad" / "train.json").read_text(encoding="utf-8"))
    texts = [p["context"] + " " + " ".join(q["question"] for q in p["qas"]) for a in document["data"] for p in a["paragraphs"]]
    counts = collections.Counter(re.findall(r"[a-z]{2,}", " ".join(texts).lower()))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]
    characters = string.ascii_lowercase + string.digits
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *("##" + c for c in characters), *".,?!'-():;%", *words]


def tensors(tokens):
    """Yields name, shape and values: weights from Normal(0, 0.02) as in BERT, biases 0, LayerNorm 1 and 0."""
    source = random.Random(1)

    def normal(name, *shape):
        count = shape[0] * shape[1]
        return name, shape, [source.gauss(0, 0.02) for _ in range(count)]

    def linear(name, out, into):
        return [normal(name + ".weight", out, into), (name + ".bias", (out,), [0.0] * out)]

    def norm(name):
        return [(name + ".weight", (HIDDEN,), [1.0] * HIDDEN), (name + ".bias", (HIDDEN,), [0.0] * HIDDEN)]

    yield normal("bert.embeddings.word_embeddings.weight", tokens, HIDDEN)
    yield normal("bert.embeddings.position_embeddings.weight", POSITIONS, HIDDEN)
    yield normal("bert.embeddings.token_type_embeddings.weight", 2, HIDDEN)
    yield from norm("bert.embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"bert.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            yield from linear(f"{name}.attention.{part}", HIDDEN, HIDDEN)
        yield from norm(name + ".attention.output.LayerNorm")
        yield from linear(name + ".intermediate.dense", FEED_FORWARD, HIDDEN)
        yield from linear(name + ".output.dense", HIDDEN, FEED_FORWARD)
        yield from norm(name + ".output.LayerNorm")


def safetensors(named):
    header, body = {}, b""
    for name, shape, values in named:
        data = struct.pack(f"<{len(values)}e", *values)  # half precision
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    tokens = vocabulary()
    config = {
        "architectures": ["BertModel"], "model_type": "bert", "vocab_size": len(tokens), "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": FEED_FORWARD,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "pad_token_id": 0,
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (directory / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (directory / "model.safetensors").write_bytes(safetensors(tensors(len(tokens))))


if __name__ == "__main__":
    main()
