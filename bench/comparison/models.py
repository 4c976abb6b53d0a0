"""Models that both sides load from the same directory: MiniLM with a head, and BERTs of any shape with random weights."""

import array
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys

BLOCK = 1_000_003  # values drawn; prime, so that no matrix repeats itself row by row
DEVIATION = 0.02

BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


class Values:
    """Normal(0, 0.02) from a seed. One block is drawn and every tensor takes its values round it."""

    def __init__(self, seed):
        draw = random.Random(seed).gauss
        self.block = array.array("f", (draw(0.0, DEVIATION) for _ in range(BLOCK)))
        if sys.byteorder == "big":
            self.block.byteswap()
        self.position = 0

    def take(self, count):
        """Little-endian bytes of `count` floats."""
        doubled = (self.block + self.block).tobytes()
        first = 4 * self.position
        self.position = (self.position + count) % BLOCK
        whole, rest = divmod(count, BLOCK)
        once = doubled[first : first + 4 * BLOCK]
        return once * whole + once[: 4 * rest]


def shapes(config):
    """Name and shape of each tensor of BertForQuestionAnswering."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    embeddings = "bert.embeddings."
    yield embeddings + "word_embeddings.weight", (config["vocab_size"], hidden)
    yield embeddings + "position_embeddings.weight", (config["max_position_embeddings"], hidden)
    yield embeddings + "token_type_embeddings.weight", (config["type_vocab_size"], hidden)
    yield from norm_shapes(embeddings, hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"bert.encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            yield from dense_shapes(f"{prefix}attention.self.{part}.", hidden, hidden)
        yield from dense_shapes(prefix + "attention.output.dense.", hidden, hidden)
        yield from norm_shapes(prefix + "attention.output.", hidden)
        yield from dense_shapes(prefix + "intermediate.dense.", inner, hidden)
        yield from dense_shapes(prefix + "output.dense.", hidden, inner)
        yield from norm_shapes(prefix + "output.", hidden)
    yield from dense_shapes("qa_outputs.", 2, hidden)


def dense_shapes(prefix, out, into):
    yield prefix + "weight", (out, into)
    yield prefix + "bias", (out,)


def norm_shapes(prefix, hidden):
    yield prefix + "LayerNorm.weight", (hidden,)
    yield prefix + "LayerNorm.bias", (hidden,)


def initial(name, shape, values):
    count = 1
    for size in shape:
        count *= size
    if name.endswith("LayerNorm.weight"):
        return struct.pack("<f", 1.0) * count
    return bytes(4 * count) if name.endswith("bias") else values.take(count)


def write_safetensors(path, tensors):
    """`tensors`: (name, shape, little-endian float bytes)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, data in tensors:
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors:
            file.write(data)


def read_safetensors(path):
    """Name, shape and bytes of each float tensor."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    data = content[8 + length :]
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            yield name, entry["shape"], data[slice(*entry["data_offsets"])]


def write_tokenizer(directory, vocabulary):
    shutil.copyfile(vocabulary, directory / "vocab.txt")
    (directory / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}))


def make_random_bert(directory, vocabulary, shape=None, seed=1, dropout=0.1):
    """A BERT for question answering of the given shape (default BERT-base) with random weights; returns `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    words = len(pathlib.Path(vocabulary).read_text(encoding="utf-8").splitlines())
    config = {"architectures": ["BertForQuestionAnswering"], "model_type": "bert", "hidden_act": "gelu",
              "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout, "initializer_range": DEVIATION,
              "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": words,
              "pad_token_id": 0, **BERT_BASE, **(shape or {})}
    values = Values(seed)
    tensors = [(name, shape, initial(name, shape, values)) for name, shape in shapes(config)]
    write_safetensors(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_tokenizer(directory, vocabulary)
    return directory


def make_minilm(directory, program, vocabulary):
    """MiniLM-L6-H384 as `mylos fetch` gets it, with a random head that both sides then share; returns `directory`."""
    done = subprocess.run([program, "fetch", "minilm"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"mylos fetch minilm: {done.stderr.strip().splitlines()[-1]}")
    source = pathlib.Path(done.stdout.strip())
    directory.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text())
    config["architectures"] = ["BertForQuestionAnswering"]
    wanted = dict(shapes(config))
    tensors = []
    for name, shape, data in read_safetensors(source / "model.safetensors"):
        full = name if name.startswith("bert.") else "bert." + name
        if full in wanted:
            tensors.append((full, shape, data))
    values = Values(1)
    tensors += [(name, shape, initial(name, shape, values)) for name, shape in wanted.items() if name.startswith("qa_outputs.")]
    if {name for name, _, _ in tensors} != set(wanted):
        raise RuntimeError(f"{source}: tensors of BertForQuestionAnswering are missing")
    write_safetensors(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_tokenizer(directory, vocabulary)
    return directory
