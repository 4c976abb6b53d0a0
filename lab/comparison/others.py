"""Compares evaluation, tokenising, and the start-up time of commands."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from comparison.environment import PeersMissing
from comparison.mylos import evaluate, run_json
from comparison.peer import Peer
from comparison.questions import BATCH, MAX_LENGTH, STRIDE, first_questions, flat_rows
from comparison.training import LOSS_TOLERANCE, beside_before, row_name, say, say_rates

# name -> engine, whether its environment is tuned (comparison/peer.py), whether windows are sorted by length
ENGINES = {
    "PyTorch, padded to the longest": ("pytorch", False, False),
    "PyTorch, best effort": ("pytorch", True, True),
    "ONNX Runtime": ("onnx", False, False),
    "ONNX Runtime, sorted by length": ("onnx", False, True),
}

# folder of $MYLOS_REFERENCE/tokenizers -> kind of its model
TOKENIZERS = {"llama3-style": "BPE of bytes", "llama2-fast": "BPE of characters", "wordpiece-fast": "WordPiece", "unigram-xlmr": "Unigram"}


def start_engines(session, subject, questions, stack):
    """Returns {name: peer} of the engines that run here. Engines that differ only in the order of windows share a process."""
    processes, peers = {}, {}
    for name, (engine, tuned, _) in ENGINES.items():
        try:
            if (engine, tuned) not in processes:
                processes[engine, tuned] = start_engine(session, subject, questions, engine, tuned, stack)
        except PeersMissing as reason:
            session.results.leave_out(f"{subject.name} evaluation: {name}", reason)
            continue
        peers[name] = processes[engine, tuned]
    return peers


def start_engine(session, subject, questions, engine, tuned, stack):
    log = session.scratch(f"{engine}{'-tuned' if tuned else ''}.log")
    peer = stack.enter_context(Peer(session.python, "inference.py", session.threads, log, tuned=tuned))
    scratch = session.scratch(engine)
    scratch.mkdir(parents=True, exist_ok=True)
    loaded = peer.ask("load", engine=engine, model=str(subject.model), questions=str(questions), max_length=MAX_LENGTH,
                      stride=STRIDE, threads=session.threads, scratch=str(scratch))
    if loaded["fused"]:
        say(f"{engine}: fused {loaded['fused']}")
    return peer


def predict(peer, name):
    return peer.ask("predict", batch=BATCH, by_length=ENGINES[name][2])


def evaluation(session, subject, questions):
    """Compares windows per second of predictions alone, without loading and without choosing answers."""
    what = f"{subject.name} evaluation"
    file = first_questions(session.data / "squad/v1.1/dev.json", session.scratch("dev.json"), questions)
    samples = {name: [] for name in session.programs}
    with contextlib.ExitStack() as stack:
        peers = start_engines(session, subject, file, stack)
        ours = evaluate(session.program, subject.model, file, session.scratch("eval"), session.threads)
        for name, peer in peers.items():
            theirs = predict(peer, name)
            session.results.check(f"{what}: {name}", [ours["loss"]], [theirs["loss"]], LOSS_TOLERANCE)
            if theirs["windows"] != ours["windows"]:
                raise ValueError(f"{what}: {ours['windows']} windows of ours, {theirs['windows']} of {name}")
            samples[name] = []
        for turn in range(session.rounds):
            for name, program in session.programs.items():
                done = evaluate(program, subject.model, file, session.scratch("eval"), session.threads)
                session.results.check(f"{what}: {name}", [done["loss"]], [ours["loss"]], LOSS_TOLERANCE)
                if done["windows"] != ours["windows"]:
                    raise ValueError(f"{what}: {ours['windows']} windows, then {done['windows']} of {name}")
                samples[name].append(done["windows"] / done["seconds"])
            for name, peer in peers.items():
                samples[name].append(ours["windows"] / predict(peer, name)["seconds"])
            say_rates(f"{what}: round {turn + 1} of {session.rounds}", samples)
    for name, values in samples.items():
        session.results.cell(what, name, "windows/s", values)
        if name in session.programs:
            continue
        for program in session.programs:
            session.results.ratio(row_name(what, program), name, samples[program], values)
    beside_before(session, what, samples)


def texts_of(path):
    """Returns the texts that feature building tokenises: each context once, and each question."""
    rows = list(flat_rows(path))
    return [*dict.fromkeys(row["context"] for row in rows), *(row["question"].lstrip() for row in rows)]


def write_texts(path, texts):
    path.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="ascii")
    return str(path)


def tokenising(session):
    """Compares the tokenising of SQuAD's dev set to ids and offsets in one thread."""
    what = "tokenising, one thread"
    vocabulary = session.data / "vocab/bert-base-uncased.txt"
    source = session.data / "squad/v1.1/dev.json"
    texts = texts_of(source)
    command = [session.program, "bench", "tokenize", "--vocab", vocabulary, "--data", source, "--json"]
    with Peer(session.python, "tokenizing.py", 1, session.scratch("tokenizing.log")) as peer:
        check_ids(session, peer, vocabulary, [" ".join(text.splitlines()) for text in texts])
        peer.ask("load", vocabulary=str(vocabulary), texts=write_texts(session.scratch("texts.jsonl"), texts))
        take_turns(session, what, command, peer)


def take_turns(session, what, command, peer):
    """Times `command` and the peer, which has read the same texts, in turns. Errors: ValueError if they give different numbers of tokens."""
    ours, theirs = [], []
    for turn in range(session.rounds):
        measured, reply = run_json(command, 1), peer.ask("encode")
        if (measured["texts"], measured["tokens"]) != (reply["texts"], reply["tokens"]):
            raise ValueError(f"{what}: {measured['texts']} texts of {measured['tokens']} tokens against {reply}")
        ours.append(measured["texts_per_second"])
        theirs.append(reply["texts"] / reply["seconds"])
        say(f"{what}: round {turn + 1} of {session.rounds}: {ours[-1]:.0f}, {theirs[-1]:.0f} texts/s")
    session.results.cell(what, "Mylos", "texts/s", ours)
    session.results.cell(what, "tokenizers (Rust)", "texts/s", theirs)
    session.results.ratio(what, "tokenizers (Rust)", ours, theirs)


def tokenizer_files(session):
    """Compares the reading of texts by tokenizer.json, each kind of model on chess games and on SQuAD's contexts, in one thread."""
    games = [" ".join(json.loads(line)["Moves"]) for line in (session.data / "chess/games-dev.jsonl").read_text(encoding="utf-8").splitlines()]
    contexts = [text for text in texts_of(session.data / "squad/v1.1/dev.json") if len(text) > 200]
    for name, kind in TOKENIZERS.items():
        model = session.scratch(name)
        shutil.copytree(session.reference / "tokenizers" / name, model, ignore=shutil.ignore_patterns("*.jsonl"))
        config = json.loads((session.reference / "llama/tiny/config.json").read_text(encoding="utf-8"))
        (model / "config.json").write_text(json.dumps(config | {"vocab_size": 1 << 20}))
        for texts, what in ((games, "games"), (contexts, "SQuAD's contexts")):
            rows = session.scratch(f"{name}.jsonl")
            rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="ascii")
            command = [session.program, "bench", "tokenize", "--model", model, "--data", rows, "--json"]
            with Peer(session.python, "tokenizing.py", 1, session.scratch("tokenizing.log")) as peer:
                peer.ask("load", file=str(model / "tokenizer.json"), texts=write_texts(session.scratch("texts.jsonl"), texts))
                take_turns(session, f"tokenizer.json, {kind}, {what}", command, peer)


def check_ids(session, peer, vocabulary, lines):
    """Checks that both programs give the same ids for every line. Errors: ValueError."""
    plain, theirs = session.scratch("lines.txt"), session.scratch("their-ids.jsonl")
    plain.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    peer.ask("load", vocabulary=str(vocabulary), texts=write_texts(session.scratch("lines.jsonl"), lines))
    peer.ask("encode")
    peer.ask("ids", output=str(theirs))
    with open(plain, encoding="utf-8") as file:
        done = subprocess.run([session.program, "tokenize", "--vocab", vocabulary], stdin=file, capture_output=True, text=True,
                              encoding="utf-8", check=True)
    ours = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [json.loads(line) for line in theirs.read_text().splitlines()]
    differing = sum(a != b for a, b in zip(ours, expected, strict=True))
    session.results.checks.append({"what": "tokenising: lines with other ids", "lines": len(expected), "differing": differing})
    if differing:
        raise ValueError(f"tokenising: {differing} of {len(expected)} lines have other ids")


def forget(paths):
    """Drops the files from the page cache, as far as the system allows."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def milliseconds(command, cold):
    forget(cold)
    begin = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return 1000 * (time.perf_counter() - begin)


def starting(session, model):
    """Measures the milliseconds from command to exit, also cold: with the files of program and model dropped from the page cache."""
    context = session.scratch("context.txt")
    context.write_text("In 1745 the English blacksmith Edmund Lee patented the fantail, a small wheel behind the cap.\n")
    files = [session.program, *(path for path in pathlib.Path(model).iterdir() if path.is_file())]
    ask = [session.program, "ask", "--model", model, "--context", context, "Who patented the fantail?"]
    for what, command in (("mylos info", [session.program, "info"]), ("mylos ask, MiniLM", ask)):
        for state, forgotten in (("cold", files), ("warm", [])):
            samples = [milliseconds(command, forgotten) for _ in range(2 * session.rounds + 1)]
            session.results.value(what, f"{state} start", samples, " ms")


def large_tokenizer(tokens, merges):
    """Returns a tokenizer.json of so many tokens and merges. As in Llama 3's, several merges make the same token."""
    syllables = ["".join(letters) for letters in itertools.product("bdfg", "aei")]
    texts = ["".join(parts) for length in range(1, 6) for parts in itertools.product(syllables, repeat=length)][:tokens]
    pairs = ([text[:at], text[at:]] for text in texts for at in range(2, len(text), 2))
    model = {"type": "BPE", "vocab": {text: i for i, text in enumerate(texts)}, "merges": list(itertools.islice(pairs, merges))}
    return {"version": "1.0", "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}, "model": model}


# Runs a command without input in a process of its own, as memory counts from that of the process that starts it.
MEASURED = """import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, check=True)
print(1000 * (time.perf_counter() - begin), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"""


def tokenizer_reading(session):
    """Measures the milliseconds and the memory of a command that reads a tokenizer.json as large as Llama 3's."""
    model = session.scratch("large")
    model.mkdir()
    config = json.loads((session.reference / "llama/tiny/config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"vocab_size": 150_000}))
    (model / "tokenizer.json").write_text(json.dumps(large_tokenizer(150_000, 280_000), indent=2))
    command = [sys.executable, "-c", MEASURED, session.program, "tokenize", "--model", model]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(2 * session.rounds + 1)]
    times, memory = ([float(value) for value in values] for values in zip(*runs, strict=True))
    session.results.value("tokenizer.json of 150,000 tokens and 280,000 merges", "read", times, " ms")
    session.results.value("tokenizer.json of 150,000 tokens and 280,000 merges", "memory", memory, " MiB")
