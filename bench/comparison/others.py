"""Evaluation, tokenising, and the time from a command to its first answer."""

import contextlib
import json
import os
import pathlib
import subprocess
import time

from comparison.environment import PeersMissing
from comparison.mylos import evaluate, run_json
from comparison.peer import Peer
from comparison.questions import BATCH, MAX_LENGTH, STRIDE, first_questions, flat_rows
from comparison.training import LOSS_TOLERANCE, say

ENGINES = {"PyTorch, padded to the longest": ("pytorch", 2.0), "ONNX Runtime": ("onnx", 1.2)}


def start_engines(session, subject, questions, stack):
    """name -> peer, of those that run here."""
    peers = {}
    for name, (engine, _) in ENGINES.items():
        peer = stack.enter_context(Peer(session.python, "inference.py", session.threads, session.scratch(f"{engine}.log")))
        scratch = session.scratch(engine)
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            loaded = peer.ask("load", engine=engine, model=str(subject.model), questions=str(questions), max_length=MAX_LENGTH,
                              stride=STRIDE, threads=session.threads, scratch=str(scratch))
        except PeersMissing as reason:
            session.results.leave_out(f"{subject.name} evaluation: {name}", reason)
            continue
        if loaded["fused"]:
            say(f"ONNX Runtime fused {loaded['fused']}")
        peers[name] = peer
    return peers


def evaluation(session, subject, questions):
    """Windows a second: predictions alone, without choosing answers and without loading."""
    what = f"{subject.name} evaluation"
    source = session.data / "squad/v1.1/dev.json"
    file = first_questions(source, session.scratch("dev.json"), questions)
    with contextlib.ExitStack() as stack:
        peers = start_engines(session, subject, file, stack)
        ours = evaluate(session.program, subject.model, file, session.scratch("eval"), session.threads)
        ways = {(name, by_length): [] for name in peers for by_length in (False, True)}
        for name, by_length in ways:
            loss = peers[name].ask("predict", batch=BATCH, by_length=by_length)["loss"]
            session.results.check(f"{what}: {name}", [ours["loss"]], [loss], LOSS_TOLERANCE)
        rates = []
        for turn in range(session.rounds):
            say(f"{what}: round {turn + 1} of {session.rounds}")
            ours = evaluate(session.program, subject.model, file, session.scratch("eval"), session.threads)
            rates.append(ours["windows"] / ours["seconds"])
            for (name, by_length), samples in ways.items():
                samples.append(ours["windows"] / peers[name].ask("predict", batch=BATCH, by_length=by_length)["seconds"])
    session.results.cell(what, "Mylos", "windows/s", rates)
    for (name, by_length), samples in ways.items():
        full = f"{name}{', sorted by length' if by_length else ''}"
        session.results.cell(what, full, "windows/s", samples)
        session.results.ratio(what, full, rates, samples, None if by_length else ENGINES[name][1])


def texts_of(path):
    """What building features tokenises: each context once, and each question."""
    rows = list(flat_rows(path))
    return [*dict.fromkeys(row["context"] for row in rows), *(row["question"].lstrip() for row in rows)]


def write_texts(path, texts):
    path.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="ascii")
    return str(path)


def tokenising(session):
    """SQuAD's dev set to ids and offsets in one thread."""
    what = "tokenising, one thread"
    vocabulary = session.data / "vocab/bert-base-uncased.txt"
    source = session.data / "squad/v1.1/dev.json"
    texts = texts_of(source)
    command = [session.program, "bench", "tokenize", "--vocab", vocabulary, "--data", source, "--json"]
    ours, theirs = [], []
    with Peer(session.python, "tokenizing.py", 1, session.scratch("tokenizing.log")) as peer:
        check_ids(session, peer, vocabulary, [" ".join(text.splitlines()) for text in texts])
        peer.ask("load", vocabulary=str(vocabulary), texts=write_texts(session.scratch("texts.jsonl"), texts))
        for turn in range(session.rounds):
            measured, reply = run_json(command, 1), peer.ask("encode")
            if (measured["texts"], measured["tokens"]) != (reply["texts"], reply["tokens"]):
                raise ValueError(f"tokenising: {measured['texts']} texts of {measured['tokens']} tokens against {reply}")
            ours.append(measured["texts_per_second"])
            theirs.append(reply["texts"] / reply["seconds"])
            say(f"{what}: round {turn + 1} of {session.rounds}: {ours[-1]:.0f}, {theirs[-1]:.0f} texts/s")
    session.results.cell(what, "Mylos", "texts/s", ours)
    session.results.cell(what, "tokenizers (Rust)", "texts/s", theirs)
    session.results.ratio(what, "tokenizers (Rust)", ours, theirs, 1.5)


def check_ids(session, peer, vocabulary, lines):
    """Both give the same ids for every line. Errors: ValueError."""
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
    """Drops the files from the page cache, as far as the system lets us."""
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
    """Milliseconds from command to exit; cold: the program's and the model's files are not in memory."""
    context = session.scratch("context.txt")
    context.write_text("In 1745 the English blacksmith Edmund Lee patented the fantail, a small wheel behind the cap.\n")
    files = [session.program, *(path for path in pathlib.Path(model).iterdir() if path.is_file())]
    ask = [session.program, "ask", "--model", model, "--context", context, "Who patented the fantail?"]
    for what, command, most in (("mylos info", [session.program, "info"], 60), ("mylos ask, MiniLM", ask, 300)):
        for state, forgotten in (("cold", files), ("warm", [])):
            samples = [milliseconds(command, forgotten) for _ in range(2 * session.rounds + 1)]
            session.results.value(what, f"{state} start", samples, most, " ms", at_most=True)
