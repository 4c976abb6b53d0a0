#!/usr/bin/env python3
"""Records how Hugging Face `tokenizers` classifies every code point -> tests/golden/unicode_classes.json.

With --tables, also prints the tables of data/tokenizer/bert_unicode.cpp: differences from the newest Unicode (PyPI: unicodedata2).
Needs PyPI: tokenizers, and unicodedata2 for --tables. Recorded with tokenizers 0.23.3, unicodedata2 18.0.0.
"""

import bisect
import json
import sys

from tokenizers.normalizers import NFD, NFKD, BertNormalizer, StripAccents
from tokenizers.pre_tokenizers import BertPreTokenizer

from common import GOLDEN, fnv1a

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(code_points):
    result = []
    for c in sorted(code_points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def classes():
    clean = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    strip = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    words = BertPreTokenizer()
    found = {"removed": [], "whitespace": [], "chinese": [], "punctuation": [], "marks": [], "combining_marks": []}
    for c in CODE_POINTS:
        char = chr(c)
        kind = {"ab": "removed", "a b": "whitespace", f"a {char} b": "chinese"}.get(clean.normalize_str(f"a{char}b"))
        if kind:
            found[kind].append(c)
        split = [word for word, _ in words.pre_tokenize_str(f"a{char}b")]
        if split == ["a", char, "b"]:
            found["punctuation"].append(c)
        if strip.normalize_str(char) == "":
            found["marks"].append(c)
        if StripAccents().normalize_str(char) == "":
            found["combining_marks"].append(c)
    return found


def digests():
    """Returns, for each mapping, the number and a digest of (code point, image...) of the code points that it changes."""
    lower = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True)
    result = {}
    for name, normalizer in (("lower", lower), ("decomposition", NFD()), ("compatible_decomposition", NFKD())):
        digest, count = fnv1a([]), 0
        for c in CODE_POINTS:
            image = normalizer.normalize_str(chr(c))
            if image != chr(c):
                digest, count = fnv1a([c, *map(ord, image)], digest), count + 1
        result[name] = {"count": count, "digest": f"{digest:016x}"}
    return result


def mark_order_is(c, normalize):
    """Returns whether `tokenizers` orders mark c among marks of classes 1, 10 and 240 like `normalize`."""
    texts = [text for other in "\u0334\u05b0\u0345" for text in (f"a{chr(c)}{other}", f"a{other}{chr(c)}")]
    return all(NFD().normalize_str(text) == normalize("NFD", text) for text in texts)


def print_table(name, wrong, right):
    """Prints ranges that cover all of `wrong` and none of `right`."""
    right = sorted(right)
    result = []
    for c in sorted(wrong):
        if result:
            after = bisect.bisect(right, result[-1][1])
            if after == len(right) or right[after] > c:
                result[-1][1] = c
                continue
        result.append([c, c])
    print(name, ", ".join(f"Range{{0x{a:X}, 0x{b:X}}}" for a, b in result))


def print_tables(found):
    import unicodedata2

    category = {c: unicodedata2.category(chr(c)) for c in CODE_POINTS}
    marks, punctuation, removed = (set(found[name]) for name in ("marks", "punctuation", "removed"))
    print_table("newer_marks", [c for c in CODE_POINTS if category[c] == "Mn" and c not in marks], marks)
    combining_marks = set(found["combining_marks"])
    print_table("newer_combining_marks", [c for c in CODE_POINTS if category[c][0] == "M" and c not in combining_marks], combining_marks)
    print_table("newer_punctuation", [c for c in CODE_POINTS if category[c][0] == "P" and c not in punctuation], punctuation)
    controls = [c for c in CODE_POINTS if category[c] in ("Cc", "Cf", "Co") and c > 0xD and c not in removed]
    print_table("newer_controls", controls, removed)
    combining = [c for c in CODE_POINTS if unicodedata2.combining(chr(c))]
    right = [c for c in combining if mark_order_is(c, unicodedata2.normalize)]
    print_table("newer_classes", set(combining) - set(right), right)
    decomposed = [c for c in CODE_POINTS if NFD().normalize_str(chr(c)) != chr(c)]
    newer = [c for c in CODE_POINTS if unicodedata2.normalize("NFD", chr(c)) != NFD().normalize_str(chr(c))]
    print_table("newer_decompositions", newer, decomposed)
    decomposed = [c for c in CODE_POINTS if NFKD().normalize_str(chr(c)) != chr(c)]
    newer = [c for c in CODE_POINTS if unicodedata2.normalize("NFKD", chr(c)) != NFKD().normalize_str(chr(c))]
    print_table("newer_compatible_decompositions", newer, decomposed)
    print("marks no more:", [hex(c) for c in marks if category[c] != "Mn"])
    print("combining marks no more:", [hex(c) for c in combining_marks if category[c][0] != "M"])
    print("punctuation no more:", [hex(c) for c in punctuation if c > 127 and category[c][0] != "P"])


def main():
    found = classes()
    golden = {name: ranges(code_points) for name, code_points in found.items()} | digests()
    (GOLDEN / "unicode_classes.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="ascii")
    if "--tables" in sys.argv:
        print_tables(found)


main()
