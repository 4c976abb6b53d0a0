#!/usr/bin/env python3
"""Records how Hugging Face's tokenizer tokenizes texts.

-> tests/golden/tokens.jsonl, odd texts: [switches, text, [[id, begin, end], ...]];
   switches: lower, strip ("-" where unset), chinese;
-> tests/golden/question_tokens.jsonl, the questions of examples/squad: {"text", "ids", "tokens"}.
Needs PyPI: tokenizers. Recorded with tokenizers 0.23.3.
"""

import random

from common import bert_tokenizer, load, write_lines

SWITCHES = {
    "1-1": (True, None, True),
    "0-1": (False, None, True),
    "101": (True, False, True),
    "011": (False, True, True),
    "1-0": (True, None, False),
}

TEXTS = [
    "",
    " ",
    "\t\n\r \u00a0\u3000\u2028\u2029",
    "Hello, world!",
    "unaffable unwanted Embeddings",
    "東京は日本の首都です。北京 is 中国's capital",
    "\uf900\uf901 compatibility \U0002f800 ideographs \U00020000x",
    "한국어 텍스트 가각",
    "cafe\u0301 café naïve Ångström Å",
    "\u0301leading mark, a\u0323\u0308\u0304 stacked, \u00e4\u0323",
    "i\u0307 \u0130stanbul ISTANBUL \u0131",
    "ΟΔΥΣΣΕΥΣ ὈΔΥΣΣΕΎΣ",
    "Straße STRASSE \u1e9e",
    "ﬁne ﬂow \u01c5 \u01c4",
    "zero\u200bwidth joi\u200dner soft\u00adhyphen bom\ufeff",
    "nul\x00 bell\x07 tab\x0bvt\x0cff del\x7f nel\x85end",
    "replacement \ufffd character",
    "private \ue000 use \U000f0000",
    "nbsp\u00a0between\u202fnarrow\u2009thin",
    "emoji 😀 👨‍👩‍👧 🇫🇷 👍🏽",
    "half-width ｶﾞﾊﾟ full-width ＡＢＣ１２３！",
    "x" * 100,
    "x" * 101,
    "y" * 250 + " z",
    "é" * 100 + " " + "é" * 101,
    "\U00010400\U0001d49c\U0001f130 astral \U00012000",
    "curly “quotes” ‘single’ en–dash em—dash … ellipsis",
    "$100 + 50% = <tag> ^caret `tick` |pipe| ~tilde~",
    "≠ not equal, ≯ and \u1fef varia; \u037e question",
    "§ paragraph © 2020 ® ™ ½ ² ³ µ ° ×",
    "עִבְרִית العَرَبِيَّة ไทย हिन्दी বাংলা தமிழ்",
    "Ελληνικά Русский Українська ქართული Հայերեն",
    "Tiếng Việt Đặng",
    "[CLS] raw [SEP] special [MASK] [PAD] [UNK] tokens",
    "[cls] [Sep] [MASK [[SEP]] x[SEP]y é[CLS]\u0301",
    "##ing ## # #hash",
    "a.b,c;d:e!f?g(h)i[j]k{l}m\"n'o/p\\q-r_s",
    "don't it's O'Brien's 1,234.56 3.14e-10 user@example.com https://x.y/z?a=b&c",
    "\u1734\U0001171e\u166d\U000111c9 categories that changed",
    "\u08e2\U0001e2ae\u05bf\u07fd\U00011938 newer than the tables",
    "\u302e\u1b44\u0301x\u0344\u0323",
    "line\r\nbreaks\nand\ttabs",
    "ＣＪＫ、。・「」『』【】",
    "a" + "\u0300" * 150 + "b",
    "中" * 120,
    "Ⅷ ⅷ Ⓐ ⓐ 🄰 ℌ ℵ",
]


def random_texts(count):
    """Yields random mixtures of any code points with marks, capitals and special characters."""
    draw = random.Random(42)
    pools = [
        [chr(c) for c in range(0x20, 0x7F)],
        [chr(c) for c in (*range(0x300, 0x370), *range(0x591, 0x5C8))],
        [chr(c) for c in (*range(0xC0, 0x250), *range(0x1E00, 0x2000))],
        [chr(c) for c in (*range(0x4E00, 0x4E80), *range(0xAC00, 0xAC80), *range(0x3040, 0x3100), *range(0xFF00, 0xFFEF))],
        [chr(c) for c in (0, 9, 0xB, 0x7F, 0x85, 0xA0, 0xAD, 0x200B, 0x2028, 0x3000, 0xFEFF, 0xFFFD, 0x130, 0x3A3)],
        ["[SEP]", "[MASK]", "the", "running", " ", " "],
    ]
    for _ in range(count):
        parts = []
        for _ in range(draw.randint(1, 24)):
            if draw.random() < 0.1:
                code_point = draw.randrange(0x110000 - 0x800)
                parts.append(chr(code_point if code_point < 0xD800 else code_point + 0x800))
            else:
                parts.append(draw.choice(pools[draw.choice((0, 0, 0, 1, 2, 3, 4, 5))]))
        yield "".join(parts)


def question_tokens():
    tokenizer = bert_tokenizer()
    for name in ("examples/squad/train.json", "examples/squad/dev.json"):
        for article in load(name)["data"]:
            for text in (q["question"] for paragraph in article["paragraphs"] for q in paragraph["qas"]):
                encoded = tokenizer.encode(text, add_special_tokens=False)
                yield {"text": text, "ids": encoded.ids, "tokens": encoded.tokens}


def main():
    texts = TEXTS + list(random_texts(120))
    rows = []
    for name, switches in SWITCHES.items():
        tokenizer = bert_tokenizer(*switches)
        for text in texts:
            encoded = tokenizer.encode(text, add_special_tokens=False)
            rows.append([name, text, [[i, *offsets] for i, offsets in zip(encoded.ids, encoded.offsets)]])
    write_lines("tokens.jsonl", rows)
    write_lines("question_tokens.jsonl", question_tokens())


if __name__ == "__main__":
    main()
