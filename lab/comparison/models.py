"""Models that both programs load from the same directory: MiniLM with a head; BERTs, Llamas and ResNets with random weights."""

import array
import functools
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys

BLOCK = 1_000_003  # number of values that are drawn; prime, so that the rows of a matrix differ
DEVIATION = 0.02

BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}

# The chess games' tokenizer has 512 pieces; a model may have more rows.
LLAMA_125M = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 4,
              "intermediate_size": 2048, "vocab_size": 32000}
LLAMA_SMALL = {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 2,
               "intermediate_size": 512, "vocab_size": 512}


# Initial scale of the last norm of each residual branch. With a scale of 1, rounding errors grow a thousandfold through 50 layers, and
# PyTorch's second losses in float and in double differ by 3e-4.
BRANCH = 0.2

# torchvision's name -> blocks of each stage, convolutions of a block.
RESNETS = {"resnet18": ((2, 2, 2, 2), 2), "resnet50": ((3, 4, 6, 3), 3)}


@functools.cache
def drawn_twice(seed):
    """Returns a block of values as little-endian bytes, twice in a row."""
    draw = random.Random(seed).gauss
    block = array.array("f", (draw(0.0, DEVIATION) for _ in range(BLOCK)))
    if sys.byteorder == "big":
        block.byteswap()
    return 2 * block.tobytes()


class Values:
    """Values of Normal(0, 0.02) from a seed. One block is drawn; tensors take their values from it cyclically."""

    def __init__(self, seed):
        self.doubled, self.position = drawn_twice(seed), 0

    def take(self, count):
        """Returns `count` floats as little-endian bytes."""
        first = 4 * self.position
        self.position = (self.position + count) % BLOCK
        whole, rest = divmod(count, BLOCK)
        if whole == 0:
            return self.doubled[first : first + 4 * rest]
        once = self.doubled[first : first + 4 * BLOCK]
        return once * whole + once[: 4 * rest]


def shapes(config):
    """Yields name and shape of each tensor of BertForQuestionAnswering."""
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


def llama_shapes(config):
    """Yields name and shape of each tensor of an untied LlamaForCausalLM."""
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (vocabulary, hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for part, rows in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)):
            yield f"{prefix}self_attn.{part}_proj.weight", (rows, hidden)
        for part in ("gate", "up"):
            yield f"{prefix}mlp.{part}_proj.weight", (inner, hidden)
        yield prefix + "mlp.down_proj.weight", (hidden, inner)
        yield prefix + "input_layernorm.weight", (hidden,)
        yield prefix + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (vocabulary, hidden)


def resnet_shapes(name, labels, stem):
    """Yields name and shape of each tensor of torchvision's ResNet."""
    depths, convolutions = RESNETS[name]
    kernel = 3 if stem == "cifar" else 7
    yield "conv1.weight", (64, 3, kernel, kernel)
    yield from batch_norm_shapes("bn1.", 64)
    into = 64
    for stage, depth in enumerate(depths):
        inner = 64 << stage
        out = inner * (4 if convolutions == 3 else 1)
        for block in range(depth):
            prefix = f"layer{stage + 1}.{block}."
            kernels = (1, 3, 1) if convolutions == 3 else (3, 3)
            widths = (into, *[inner] * (convolutions - 1), out)
            for index, size in enumerate(kernels):
                yield f"{prefix}conv{index + 1}.weight", (widths[index + 1], widths[index], size, size)
                yield from batch_norm_shapes(f"{prefix}bn{index + 1}.", widths[index + 1])
            if block == 0 and (stage > 0 or into != out):
                yield prefix + "downsample.0.weight", (out, into, 1, 1)
                yield from batch_norm_shapes(prefix + "downsample.1.", out)
            into = out
    yield from dense_shapes("fc.", labels, into)


def batch_norm_shapes(prefix, channels):
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield prefix + part, (channels,)


def dense_shapes(prefix, out, into):
    yield prefix + "weight", (out, into)
    yield prefix + "bias", (out,)


def norm_shapes(prefix, hidden):
    yield prefix + "LayerNorm.weight", (hidden,)
    yield prefix + "LayerNorm.bias", (hidden,)


def floats(value, count):
    return struct.pack("<f", value) * count


def initial(name, shape, values):
    count = 1
    for size in shape:
        count *= size
    if len(shape) == 1 and name.endswith((".weight", ".running_var")):  # of norms
        return floats(1.0, count)
    return bytes(4 * count) if len(shape) == 1 else values.take(count)


def write_safetensors(path, tensors):
    """Writes `tensors`: (name, shape, little-endian float bytes)."""
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
    """Yields name, shape and bytes of each float tensor."""
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
    """Writes a BERT for question answering of the given shape (default: BERT-base) with random weights. Returns `directory`."""
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


def make_random_llama(directory, tokenizer, shape, positions=512, seed=1):
    """Writes a Llama of the given shape with random weights. Returns `directory`. `tokenizer`: a directory that has one, or None."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "max_position_embeddings": positions,
              "rms_norm_eps": 1e-5, "rope_theta": 1e6, "tie_word_embeddings": False, "initializer_range": DEVIATION,
              "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32", **shape}
    values = Values(seed)
    write_safetensors(directory / "model.safetensors", [(name, rows, initial(name, rows, values)) for name, rows in llama_shapes(config)])
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for name in ("tokenizer.model", "tokenizer_config.json") if tokenizer else ():
        shutil.copyfile(pathlib.Path(tokenizer) / name, directory / name)
    return directory


def make_adapter(directory, model, rank, seed=2):
    """Writes an adapter of all linear layers of the Llama in `model`, as PEFT begins: B is zero. Returns `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    config = json.loads((model / "config.json").read_text())
    values, tensors, names = Values(seed), [], set()
    for name, (out, wide) in (row for row in llama_shapes(config) if row[0].endswith("_proj.weight")):
        module = name.removesuffix(".weight")
        names.add(module.rsplit(".", 1)[1])
        tensors += [(f"base_model.model.{module}.lora_A.weight", (rank, wide), values.take(rank * wide)),
                    (f"base_model.model.{module}.lora_B.weight", (out, rank), floats(0.0, out * rank))]
    write_safetensors(directory / "adapter_model.safetensors", tensors)
    adapter = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(model), "r": rank, "lora_alpha": 2 * rank,
               "lora_dropout": 0.0, "bias": "none", "target_modules": sorted(names)}
    (directory / "adapter_config.json").write_text(json.dumps(adapter, indent=2) + "\n")
    return directory


def make_random_resnet(directory, name, labels, stem="imagenet", seed=1):
    """Writes a ResNet of RESNETS with random weights, under torchvision's tensor names. Returns `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    depths, convolutions = RESNETS[name]
    wide = convolutions == 3
    config = {"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "architecture": name, "depths": depths,
              "embedding_size": 64, "hidden_sizes": [(256 if wide else 64) << stage for stage in range(4)], "hidden_act": "relu",
              "layer_type": "bottleneck" if wide else "basic", "id2label": {str(label): f"LABEL_{label}" for label in range(labels)},
              "mylos_stem": stem}
    values = Values(seed)
    last_norm = f".bn{convolutions}.weight"
    tensors = [(tensor, shape, floats(BRANCH, shape[0]) if tensor.endswith(last_norm) else initial(tensor, shape, values))
               for tensor, shape in resnet_shapes(name, labels, stem)]
    write_safetensors(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return directory


def make_minilm(directory, program, vocabulary):
    """Writes MiniLM-L6-H384, as `mylos fetch` gets it, with a random head that both programs load. Returns `directory`."""
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
