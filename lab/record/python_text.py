#!/usr/bin/env python3
"""Records Python's properties of every code point of its Unicode version -> tests/golden/python_text.json.

Needs only Python. Recorded with Python 3.11 (Unicode 14).
"""

import json
import re
import unicodedata

from common import GOLDEN

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

LOWER = ["ΟΔΥΣΣΕΥΣ", "Σ", "ΑΣ", "ΑΣ.", "ΑΣΑ", "Α'Σ'Α", "Α'Σ' ", "1Σ", "ªΣ", "ⅠΣ", "ΑΣ\u0301Β", "\u0345Σ", "Α\u0345Σ"]
LOWER += ["İstanbul İI", "STRASSE ẞ", "ǅ Ǆ", "Ω K Å", "𐐀𞤀", "ΑΣ Σ ΑΣ\u00ad", "ʰΣ", "ⓐΣ", "ΑΣⒶ", "🄰Σ"]

REPR = [0.0, -0.0, 1.0, 100.0, 0.1, 1 / 3, 77.05091937765205, 1e15, 1e16, 123456789012345680.0, 1e22, 1e-4, 1e-5, 1.5e-7]
REPR += [5e-324, 1.7976931348623157e308, -2.5, 2 / 3 * 100, 9007199254740993.0, 1e21 + 1, 0.30000000000000004]


def ranges(is_member):
    result = []
    for c in CODE_POINTS:
        if not is_member(chr(c)):
            continue
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def main():
    golden = {
        "unassigned": ranges(lambda char: unicodedata.category(char) == "Cn"),
        "space": ranges(str.isspace),
        "printable": ranges(str.isprintable),
        "word": ranges(lambda char: re.match(r"\w", char) is not None),
        "lower": [[text, text.lower()] for text in LOWER],
        "lower_each": [[ord(text), *map(ord, text.lower())] for text in map(chr, CODE_POINTS) if len(text.lower()) > 1],
        "repr": [[value, repr(value)] for value in REPR],
    }
    assert all(len(text.split()) == 0 and text.lstrip() == "" for (a, b) in golden["space"] for text in (chr(a), chr(b)))
    (GOLDEN / "python_text.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="ascii")


main()
