"""Writes a tiny BERT with random weights, and questions for it."""

import json
import random
import struct

HIDDEN, FEED_FORWARD, LAYERS, POSITIONS = 16, 32, 2, 64


def vocabulary():
    characters = "abcdefghijklmnopqrstuvwxyz0123456789"
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *("##" + c for c in characters), ".", "?"]


def shapes(tokens):
    def linear(name, out, columns):
        return {f"{name}.weight": [out, columns], f"{name}.bias": [out]}

    def norm(name):
        return {f"{name}.weight": [HIDDEN], f"{name}.bias": [HIDDEN]}

    embeddings = "bert.embeddings"
    found = {f"{embeddings}.word_embeddings.weight": [tokens, HIDDEN],
             f"{embeddings}.position_embeddings.weight": [POSITIONS, HIDDEN],
             f"{embeddings}.token_type_embeddings.weight": [2, HIDDEN], **norm(f"{embeddings}.LayerNorm")}
    for layer in (f"bert.encoder.layer.{i}" for i in range(LAYERS)):
        for part in ("query", "key", "value"):
            found.update(linear(f"{layer}.attention.self.{part}", HIDDEN, HIDDEN))
        found.update(linear(f"{layer}.attention.output.dense", HIDDEN, HIDDEN))
        found.update(norm(f"{layer}.attention.output.LayerNorm"))
        found.update(linear(f"{layer}.intermediate.dense", FEED_FORWARD, HIDDEN))
        found.update(linear(f"{layer}.output.dense", HIDDEN, FEED_FORWARD))
        found.update(norm(f"{layer}.output.LayerNorm"))
    return {**found, **linear("qa_outputs", 2, HIDDEN)}


def write_model(directory, unused=0, distinct=None):
    """Writes the model. `unused`: number of additional tokens. `distinct`: number of random values, which are repeated to save time."""
    directory.mkdir()
    tokens = vocabulary() + [f"[unused{i}]" for i in range(unused)]
    (directory / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (directory / "config.json").write_text(json.dumps({
        "model_type": "bert", "vocab_size": len(tokens), "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": max(2, HIDDEN // 64), "intermediate_size": FEED_FORWARD, "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "hidden_act": "gelu"}))
    numbers = random.Random(1)
    header, data = {}, bytearray()
    for name, shape in shapes(len(tokens)).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        value = (lambda: 1.0) if name.endswith("LayerNorm.weight") else (lambda: numbers.gauss(0.0, 0.1))
        drawn = min(count, distinct or count)
        values = struct.pack(f"<{drawn}f", *(value() for _ in range(drawn)))
        values = (values * -(-count // drawn))[:4 * count]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_questions(file):
    contexts = ["the red fox runs far.", "a job waits in a queue.", "stars burn gas.", "5 nodes and 8 cores."]
    paragraphs = []
    for i, context in enumerate(contexts):
        words = context.rstrip(".").split()
        paragraphs.append({"context": context, "qas": [
            {"id": f"q{i}{j}", "question": f"what is {j}?", "answers": [{"text": word, "answer_start": context.find(word)}]}
            for j, word in enumerate(words)]})
    file.write_text(json.dumps({"version": "1.1", "data": [{"title": "tiny", "paragraphs": paragraphs}]}))
