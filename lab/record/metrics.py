#!/usr/bin/env python3
"""Records scores by the official rules -> tests/golden/answer_pairs.jsonl, score_cases.jsonl, squad_scores.jsonl.

v2.0 uses transformers.data.metrics.squad_metrics, which is the official evaluate-v2.0.py; the few rules of v1.1 are
implemented here with its normalize_answer. Needs PyPI: transformers below 5. Recorded with transformers 4.46.3 and
Python 3.11: from 3.12 on, sum() of floats rounds differently than when the official scores were published.
"""

import json
import random
import types
from collections import Counter

from transformers.data.metrics import squad_metrics

from common import DATA, fnv1a, load, write_lines

BASES = [
    "", " ", "the", "The", "a", "an", "a an the", "THE A", "theatre", "another", "an apple", "apple, an", "the the end",
    "Denver Broncos", "the Denver Broncos!", "denver   broncos", "Denver\u00a0Broncos", "Denver\u2009Broncos\n",
    "1,000", "1000", "1.000", "$5.3 million", "5.3 million", "50%", "don't", "dont", "O'Brien's", "rock 'n' roll",
    "1990\u20131999", "1990-1999", "19901999", "\u201cquoted\u201d", '"quoted"', "quoted", "\u2018a\u2019", "\u2026a\u2026",
    "caf\u00e9", "cafe\u0301", "CAF\u00c9", "cafe", "a\u0301", "A\u030a", "\u00e5", "\u00c5ngstr\u00f6m", "na\u00efve",
    "\u0130stanbul", "i\u0307stanbul", "istanbul", "STRASSE", "stra\u00dfe", "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2",
    "\u03bf\u03b4\u03bf\u03c3", "\u6771\u4eac", "\u6771\u4eac\u3001", "the\u6771\u4eac", "the \u6771\u4eac", "a_b", "_a_", "the_", "a-b", "a/b",
    "an-the-a", "a.b.c", "U.S.A.", "usa", "U.S. A", "e = mc\u00b2", "e=mc2", "mc\u00b2", "\u00bd", "1/2", "\u2167", "viii", "\u2460",
    "\U0001f600", "the \U0001f600", "\U0001f600 a", "\U00010400", "\U00010428", "\u0391\u03a3", "\u03b1\u03c2", "tab\tand\x0bvt\x1cfs\x85nel",
    "tab and vt fs nel", "zero\u200bwidth", "soft\u00adhyphen", "\u3000wide\u3000", "wide", "\uff21\uff22", "\uff41\uff42", "\u01c5",
    "\u01c4", "\u01c6", "to be or not to be", "be or not to", "to to to be", "be be", "question question a question",
    "\u0e01\u0e33", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u05e9\u05c1", "a\u0e01", "the\u0301", "\u0301the", "a\u200d", "\u00aa", "\u00ba the",
]


def compute_v1(gold, prediction):
    """Returns exact_match_score and f1_score of evaluate-v1.1.py."""
    predicted = squad_metrics.normalize_answer(prediction)
    right = squad_metrics.normalize_answer(gold)
    same = sum((Counter(predicted.split()) & Counter(right.split())).values())
    if same == 0:
        return predicted == right, 0
    precision, recall = same / len(predicted.split()), same / len(right.split())
    return predicted == right, 2 * precision * recall / (precision + recall)


def answer_pairs():
    draw = random.Random(11)
    pairs = [(base, other) for base in BASES for other in (base, base.upper(), f"The {base}.", draw.choice(BASES))]
    words = ["the", "a", "cat", "Cat", "sat", "on", "mat", "mat.", "Mat,", "and", "ran", "\u6771\u4eac", "caf\u00e9"]
    for _ in range(60):
        pairs.append(tuple(" ".join(draw.choices(words, k=draw.randint(1, 7))) for _ in range(2)))
    for gold, prediction in pairs:
        v1 = compute_v1(gold, prediction)
        v2 = squad_metrics.compute_exact(gold, prediction), squad_metrics.compute_f1(gold, prediction)
        normalized = squad_metrics.normalize_answer(gold), squad_metrics.normalize_answer(prediction)
        yield [gold, prediction, *normalized, *map(float, v1), *map(float, v2)]


def score_v1(questions, predictions):
    exact = f1 = 0
    for question in questions:
        if question["id"] in predictions:
            scores = [compute_v1(answer["text"], predictions[question["id"]]) for answer in question["answers"]]
            exact += max(score[0] for score in scores)
            f1 += max(score[1] for score in scores)
    return json.dumps({"exact_match": 100.0 * exact / len(questions), "f1": 100.0 * f1 / len(questions)})


def score_v2(questions, predictions, na_probs=None, threshold=1.0):
    examples = [types.SimpleNamespace(qas_id=q["id"], answers=q["answers"]) for q in questions]
    scores = squad_metrics.squad_evaluate(examples, predictions, na_probs, threshold)
    if na_probs is None:  # the official script prints these only with --na-prob-file
        scores = {key: value for key, value in scores.items() if not key.startswith("best_")}
    return json.dumps(scores, indent=2)


def score_cases():
    """Yields small data sets: thresholds, ties, answers whose normalized form is empty."""
    draw = random.Random(5)
    texts = ["red fox", "the red fox", "fox", "a", "...", "blue whale", "Blue, whale", "", "whale"]
    for number in range(40):
        questions, predictions, na_probs = [], {}, {}
        for index in range(draw.randint(1, 9)):
            golds = [{"text": text, "answer_start": 0} for text in draw.sample(texts[:7], draw.choice((0, 1, 1, 3)))]
            questions.append({"id": f"q{index}", "answers": golds})
        for question in questions:  # ids ascend, so that sorting the keys has no effect
            predictions[question["id"]] = draw.choice(texts)
            na_probs[question["id"]] = draw.choice((0, 1, 0.25, 0.5, 0.75, -3.5, 12.125))
        threshold = draw.choice((1.0, 0.5, 0.25, -1.0))
        case = {"questions": questions, "predictions": predictions, "threshold": threshold}
        if number % 3:
            case["na_probs"] = na_probs
        case["v2"] = score_v2(questions, predictions, case.get("na_probs"), threshold)
        answered = [question for question in questions if question["answers"]]
        case["v1"] = score_v1(answered, predictions) if answered else None
        yield case


def na_prob(question_id):
    """Returns a probability that tests can recompute from the id; with ties."""
    return fnv1a(map(ord, question_id)) % 997 / 997.0


def context_words(data):
    """Answers each question with the first twelve words of the paragraph, which is sometimes partly correct."""
    paragraphs = [paragraph for article in load(data)["data"] for paragraph in article["paragraphs"]]
    return {q["id"]: " ".join(p["context"].split(" ")[:12]) for p in paragraphs for q in p["qas"]}


def squad_scores():
    for data, published in (
        ("examples/squad/dev.json", None),
        ("squad/v1.1/dev.json", "squad/v1.1/dev-predictions-match-lstm.json"),
        ("squad/v2.0/dev.json", "squad/v2.0/dev-predictions-bert.json"),
    ):
        questions = [q for article in load(data)["data"] for paragraph in article["paragraphs"] for q in paragraph["qas"]]
        gold = {q["id"]: q["answers"][0]["text"] if q["answers"] else "" for q in questions}
        other = {published: load(published)} if published else {"context": context_words(data)}
        for name, predictions in {"gold": gold, "empty": {q["id"]: "" for q in questions}, **other}.items():
            if "v1.1" in data:
                yield {"data": data, "predictions": name, "text": score_v1(questions, predictions)}
                continue
            yield {"data": data, "predictions": name, "text": score_v2(questions, predictions)}
            na_probs = {q["id"]: na_prob(q["id"]) for q in questions}
            text = score_v2(questions, predictions, na_probs, 0.75)
            yield {"data": data, "predictions": name, "threshold": 0.75, "text": text}


def main():
    assert DATA.is_dir(), f"no data at {DATA}"
    write_lines("answer_pairs.jsonl", answer_pairs())
    write_lines("score_cases.jsonl", score_cases())
    write_lines("squad_scores.jsonl", squad_scores())


if __name__ == "__main__":
    main()
