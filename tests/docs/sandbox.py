"""Prepares the directory of a reader of the documentation: downloaded models, files of SQuAD, and a finished run."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST_PAGE = "docs/getting-started.md"  # makes runs/first itself
# Only the commands are tested, not the quality of models.
QUESTIONS, MOVES = 24, 8  # of a data set; of a game of chess


def shorten(source, target):
    """Writes the first questions of a SQuAD file."""
    data, left = json.loads(source.read_text(encoding="utf-8")), QUESTIONS
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = paragraph["qas"][:left]
            left -= len(paragraph["qas"])
        article["paragraphs"] = [paragraph for paragraph in article["paragraphs"] if paragraph["qas"]]
    data["data"] = [article for article in data["data"] if article["paragraphs"]]
    target.write_text(json.dumps(data), encoding="utf-8")


def cut_games(file):
    """Leaves the first moves and the result of each game of a PGN file."""
    file.write_text(re.sub(rf" {MOVES + 1}\. .*?(?=\S+$)", " ", file.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")


def copy_examples(work):
    shutil.copytree(ROOT / "examples", work / "examples")
    for name in ("train", "dev"):
        shorten(ROOT / f"examples/squad/{name}.json", work / f"examples/squad/{name}.json")
        shutil.copy(work / f"examples/squad/{name}.json", work / f"{name}-v1.1.json")
        cut_games(work / f"examples/chess/{name}.pgn")


def make_models(cache):
    """Installs the tiny model as MiniLM and as BERT-base, with as many positions as they have."""
    sys.path.insert(0, str(ROOT / "examples/tiny-bert"))
    import make_model

    make_model.POSITIONS = 512
    for name in ("minilm", "bert-base-uncased"):
        sys.argv[1:] = [str(cache / "models" / name)]
        make_model.main()


def tokenizer_model(characters):
    """Returns the protobuf of a tokenizer.model: BPE without normalisation, with a piece for each character."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def piece(text, kind):
        return field(1, field(1, text.encode()) + b"\x15\0\0\0\0\x18" + bytes([kind]))

    special = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3)
    return special + b"".join(piece(one, 1) for one in characters) + field(2, b"\x18\x02") + field(3, field(1, b"identity") + b"\x18\0\x20\0")


def make_language_model(work):
    """Writes small-llama, a Llama without weights; games.jsonl and games-dev.jsonl, documents with ids; and prompts.txt."""
    config = {"model_type": "llama", "vocab_size": 29, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2}
    (work / "small-llama").mkdir()
    (work / "small-llama/config.json").write_text(json.dumps(config), encoding="utf-8")
    (work / "small-llama/tokenizer.model").write_bytes(tokenizer_model("abcdefgh12345678\u2581"))
    (work / "prompts.txt").write_text("e2e4 e7e5\n\nd2d4\n", encoding="utf-8")
    for name, count in (("games.jsonl", QUESTIONS), ("games-dev.jsonl", 5)):
        lines = [json.dumps({"input_ids": [3 + (5 * i + j) % 26 for j in range(4 + i % 7)]}) for i in range(count)]
        (work / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_chat_model(work, cache):
    """Installs the model of the example conversations, without weights, as a Qwen with as many positions as it has; writes chats.jsonl."""
    model = shutil.copytree(ROOT / "examples/chat/model", cache / "models/Qwen/Qwen2.5-0.5B-Instruct")
    config = json.loads((model / "config.json").read_text(encoding="utf-8")) | {"max_position_embeddings": 32768}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shutil.copy(ROOT / "examples/chat/train.jsonl", work / "chats.jsonl")


def draw_shapes(work):
    """Draws shapes: a few of the pictures of docs/images.md."""
    subprocess.run([sys.executable, "-B", ROOT / "examples/shapes/draw_shapes.py", work / "shapes", "--train", "2", "--dev", "2"], check=True)


def make_run(program, work, environment):
    """Makes runs/first, a finished run with two checkpoints."""
    subprocess.run([program, "train", "--model", "minilm", "--train", "train-v1.1.json", "--dev", "dev-v1.1.json", "--output",
                    "runs/first", "--steps", "4", "--checkpoint-every", "2"], cwd=work, env=environment, check=True,
                   capture_output=True)


def make(folder, program, page, commands):
    """Makes folder/work, with what the commands of `page` read, and the home of its reader. Returns the environment for commands."""
    work, home, programs = folder / "work", folder / "home", folder / "bin"
    for made in (work, home, programs):
        made.mkdir()
    (programs / "mylos").symlink_to(program)
    copy_examples(work)
    make_models(home / ".cache/mylos")
    make_language_model(work)
    make_chat_model(work, home / ".cache/mylos")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "HF_", "SLURM_", "PBS_"))}
    environment |= {"HOME": str(home), "PATH": f"{programs}:{environment['PATH']}", "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false",
                    "OMP_WAIT_POLICY": "passive"}
    # Lets Open MPI run as root in a container, with more ranks than processors.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    text = "\n".join(commands)
    if " shapes/" in text:
        draw_shapes(work)
    if "runs/first" in text and page != FIRST_PAGE:
        make_run(program, work, environment)
    return environment
