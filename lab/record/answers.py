#!/usr/bin/env python3
"""Records answers computed from logits by the rules of run_qa's postprocess_qa_predictions -> tests/golden/answers.jsonl.

Implements the rules (../shared/SQUAD.md, section Prediction) with numpy in float32, like run_qa, but with a stable sort where
run_qa leaves the order of ties to numpy's default. Needs PyPI: numpy. Recorded with numpy 2.4.6.
"""

import random

import numpy as np

from common import write_lines

WORDS = "The 東京 tower rises 333 m above café Zürich 😀 and it's the highest of all twenty-three towers there".split(" ")


def top(logits, count):
    return np.argsort(logits, kind="stable")[::-1][:count].tolist()


def candidates(window, n_best, max_length):
    """Yields the pairs inside the context, in the order in which they are found."""
    first = window["position"]
    last = first + len(window["offsets"])
    for start in top(window["start"], n_best):
        for end in top(window["end"], n_best):
            if first <= start <= end < last and end - start < max_length:
                begin, finish = window["offsets"][start - first][0], window["offsets"][end - first][1]
                yield {"range": [begin, finish], "start_logit": window["start"][start], "end_logit": window["end"][end]}


def score(candidate):
    return candidate["start_logit"] + candidate["end_logit"]


def answer(context, windows, v2, n_best, max_length, threshold):
    pool = [candidate for window in windows for candidate in candidates(window, n_best, max_length)]
    nulls = [{"range": [0, 0], "start_logit": w["start"][0], "end_logit": w["end"][0]} for w in windows]
    null = min(nulls, key=score)  # the first of equal ones, as with a strict comparison
    if v2:
        pool.append(null)
    best = sorted(pool, key=score, reverse=True)[:n_best]
    if v2 and all(candidate["range"] != [0, 0] for candidate in best):
        best.append(null)
    best = [dict(candidate, text=context[candidate["range"][0] : candidate["range"][1]]) for candidate in best]
    if not best or (len(best) == 1 and best[0]["text"] == ""):
        zero = np.float32(0)
        best.insert(0, {"range": [0, 0], "start_logit": zero, "end_logit": zero, "text": "empty"})
    scores = np.array([score(candidate) for candidate in best])
    shares = np.exp(scores - scores.max())
    for candidate, share in zip(best, shares / shares.sum()):
        candidate["probability"] = share
    if not v2:
        return best[0]["text"], best, None
    first = next(candidate for candidate in best if candidate["text"])
    odds = score(null) - first["start_logit"] - first["end_logit"]
    return ("" if odds > np.float32(threshold) else first["text"]), best, odds


def random_case(draw, number):
    words = WORDS * draw.choice((1, 2))
    context = " ".join(words)
    offsets, begin = [], 0
    for word in words:
        offsets.append([begin, begin + len(word)])
        begin += len(word) + 1
    size = draw.choice((6, 11, len(words)))
    windows = []
    for first in range(0, len(words), max(1, size - 2)):
        part = offsets[first : first + size]
        position = draw.randint(2, 6)
        length = position + len(part) + 1
        # Multiples of 1/16 give ties and exact sums; the others test rounding in float32.
        logit = (lambda: draw.randint(-48, 48) / 16) if number % 3 else (lambda: round(draw.gauss(0, 4), 6))
        window = {"position": position, "offsets": part}
        for side in ("start", "end"):
            window[side] = np.array([logit() for _ in range(length)], dtype=np.float32)
        if number % 4 == 1:  # no confident answer in any window
            window["start"][0] += np.float32(4)
        if number % 10 == 7:  # the best starts are after the best ends or outside the context
            window["start"][:position] += np.float32(50)
            window["end"][:position] += np.float32(50)
        if number % 10 == 9:  # no valid answer: all ends are before all starts
            window["start"][-1] += np.float32(50)
        windows.append(window)
        if first + size >= len(words):
            break
    n_best = 1 if number % 10 == 9 else draw.choice((2, 3, 5, 20))
    options = {"v2": number % 2 == 1, "n_best": n_best, "max_length": draw.choice((1, 3, 30))}
    options["threshold"] = draw.choice((0.0, 0.0, -2.5, 1.75))
    return context, windows, options


def short(value):
    """Returns the shortest decimal that parses to the same float32."""
    return float(str(np.float32(value)))


def plain(candidate):
    numbers = {key: short(candidate[key]) for key in ("start_logit", "end_logit", "probability")}
    return {"text": candidate["text"], "range": candidate["range"], **numbers}


def main():
    draw = random.Random(7)
    rows = []
    for number in range(80):
        context, windows, options = random_case(draw, number)
        text, best, odds = answer(context, windows, **options)
        for window in windows:
            window["start"], window["end"] = ([short(value) for value in window[side]] for side in ("start", "end"))
        row = {"context": context, "windows": windows, "options": options, "text": text}
        row["n_best"] = [plain(candidate) for candidate in best]
        row["null_odds"] = None if odds is None else short(odds)
        rows.append(row)
    write_lines("answers.jsonl", rows)


if __name__ == "__main__":
    main()
