#!/usr/bin/env python3
"""Records what Hugging Face `tokenizers` makes of small tokenizer.json files -> tests/golden/tokenizer_stages.jsonl.

The first line has the models by name. Then a line {"name", "tokenizer"}, whose model is such a name, comes before the lines of its texts:
[text, ids, offsets, ids with special tokens, decoded text, the same without special tokens]. Texts are drawn at random from hard fragments.

Needs PyPI: tokenizers. Recorded with tokenizers 0.22.2.
"""

import json
import random
import sys

from tokenizers import Tokenizer

from common import GOLDEN

TEXTS = int(sys.argv[1]) if len(sys.argv) > 1 else 4  # of each tokenizer
LETTERS = "abcdefghijklmnopqrstuvwxyz ABC.,'!?-0123456789▁\n"
FRAGMENTS = """a|ab|abc|the|there|é|e\u0301|ﬁ|Å|가|\u1100\u1161\u11a8|中文|🙂|👩‍👩‍👧|\u200d|\ufeff|\u0001|\x7f|\u0085|\u00a0|\u180e|\u2028|İ|ß|ſ|'s|'ſ|'ll
don't|0|12|1234|²|½|Ⅳ|٣|x|xx|Ab|aB|ABC|-|--|...|.|,|!|_|a_b|<s>|</s>|<mask>|<r>|[MOVE]|[move]|[MO\u0308VE]|[DAY]|[L]|<unk>|<pad>|▁▁|ab1|zz|xy
##|unaffable|aaaaaaa|aab|\u0344|\u0f73|\u0323\u0307|q\u0307\u0323|\u1e9b\u0323|\u212b|\ufdfa|㎏|ｱ|カ\u3099|\u2adc|क्षि|\U0001d15f|\u24b6|\ufffd|\u0000""".replace(
    "\n", "|"
).split("|") + [" ", "  ", "\n", "\r\n", "\t", " the", " do not", " ,", "\u3000", "|"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_characters():
    shown = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(c) for c in shown] + [chr(0x100 + i) for i in range(len(hidden))]


def bpe(tokens, merges, **changes):
    vocab = {}
    for token in [*tokens, *(merge.replace(" ", "") for merge in merges)]:
        vocab.setdefault(token, len(vocab))
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
            "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges} | changes


def unigram(pieces, byte_fallback):
    return {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], *pieces], "byte_fallback": byte_fallback}


def word_piece(tokens):
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 12,
            "vocab": {token: i for i, token in enumerate(["[UNK]", *tokens])}}


def models():
    letters = ["<unk>", *dict.fromkeys(LETTERS)]
    merges = ["a b", "ab c", "t h", "th e", "▁ t", "▁t h", "e r", "▁ ▁", "i n", "in g"]
    fallback = ["<unk>", *BYTES, *"abcthe ▁"]
    prefixed = ["<unk>", *"abct", *("##" + c for c in "abche"), "ab", "th", "the", "##ab"]
    suffixed = ["<unk>", *"abcthe.", *(c + "</w>" for c in "abche."), "ab", "ab</w>", "th", "the</w>", "he</w>"]
    pieces = [["▁", -2.5], ["▁a", -1.0], ["a", -3.0], ["ab", -2.0], ["▁the", -1.5], ["the", -3.5], ["t", -4.0], ["h", -4.1], ["e", -4.2], ["b", -4.3],
              ["é", -5.0], ["éé", -0.5], ["中文", -6.0]]
    return {
        "letters": bpe(letters, merges, unk_token="<unk>"),
        "fused": bpe(letters, merges, unk_token="<unk>", fuse_unk=True),
        "bytes": bpe(byte_characters(), ["a b", "Ġ t", "h e", "Ġt he", "Ġ Ġ", "Ã ©", "Ġ a", "Ġa b"]),
        "fallback": bpe(fallback, ["a b", "t h", "th e"], unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        "some bytes": bpe(fallback[:0xE0] + fallback[-8:], ["a b", "t h", "th e"], unk_token="<unk>", byte_fallback=True),
        "no unknown": bpe("abcthe ▁", ["a b", "t h", "th e"]),
        "prefixed": bpe(prefixed, [], unk_token="<unk>", continuing_subword_prefix="##") | {"merges": ["a ##b", "t ##h", "th ##e", "##a ##b"]},
        "suffixed": bpe(suffixed, [], unk_token="<unk>", end_of_word_suffix="</w>") | {"merges": ["a b", "a b</w>", "t h", "th e</w>", "h e</w>"]},
        "whole words": bpe([*"abcthe", "abcd", "the", "ab"], [], ignore_merges=True) | {"merges": [["a", "b"]]},
        "repeats": bpe("ab ", ["a a", "aa aa", "b b", "aa b", "aab b", "aaaa aaaa", "a b"]),
        "unigram": unigram(pieces, False),
        "unigram bytes": unigram([[byte, -9.0] for byte in BYTES] + pieces, True),
        "joined": unigram([["a", -1.0], ["zz", -50.0], ["xy", -60.0]], False),
        "words": word_piece([".", "a", "b", "##b", "中", "e", "é", "##a", "##e", "th", "İ", "i̇", "the", "##re", "!", ",", "'", "n", "s", "unaff", "##able"]),
        "padded": bpe([*"abcthe|", "<pad>"], [], unk_token="<pad>"),
    }


def added(first, *tokens):
    """Returns added tokens from id `first`; each is a name and the flags that are set."""
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return [{"id": first + i, "content": name} | {flag: flag in given for flag in flags} for i, (name, *given) in enumerate(tokens)]


def stage(kind, **fields):
    return {"type": kind} | fields


def split(pattern, behavior, invert=False):
    return stage("Split", pattern=pattern, behavior=behavior, invert=invert)


def tokenizers(sizes):
    """Yields a name, the name of the model, and the other stages."""
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield kind, "letters", {"normalizer": stage(kind)}
    for left, right in ((False, True), (True, False), (True, True), (False, False)):
        yield "Strip", "letters", {"normalizer": stage("Strip", strip_left=left, strip_right=right)}
    for pattern, content in (({"String": "ab"}, "cba"), ({"Regex": r"\s+"}, " "), ({"Regex": r"\d"}, ""), ({"Regex": "(?<=a)"}, "-")):
        yield "Replace", "letters", {"normalizer": stage("Replace", pattern=pattern, content=content)}
    prepend = stage("Sequence", normalizers=[stage("Prepend", prepend="▁"), stage("Replace", pattern={"String": " "}, content="▁")])
    yield "Prepend", "letters", {"normalizer": prepend}
    for clean, chinese, accents, lower in ((True, True, None, True), (False, True, True, False), (True, False, False, True), (False, False, None, False)):
        normalizer = stage("BertNormalizer", clean_text=clean, handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower)
        decoder = stage("WordPiece", prefix="##", cleanup=clean)
        tokens = added(sizes["words"], ("[MÖVE]", "normalized"), ("[DAY]", "single_word", "special"), ("[L]", "lstrip", "rstrip", "normalized", "special"))
        yield "BertNormalizer", "words", {"normalizer": normalizer, "pre_tokenizer": stage("BertPreTokenizer"), "decoder": decoder, "added_tokens": tokens}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield "Punctuation", "letters", {"pre_tokenizer": stage("Punctuation", behavior=behavior)}
        yield "Split", "letters", {"pre_tokenizer": split({"Regex": r"\d+|\s"}, behavior)}
        yield "Split inverted", "letters", {"pre_tokenizer": split({"Regex": r"\w+|[^\w\s]"}, behavior, True)}
        yield "Split at empty matches", "letters", {"pre_tokenizer": split({"Regex": "(?=[A-Z])|x*|^b|c$"}, behavior)}
    yield "Split by a string", "letters", {"pre_tokenizer": split({"String": "ab"}, "Isolated")}
    for each in (True, False):
        yield "Digits", "letters", {"pre_tokenizer": stage("Digits", individual_digits=each)}
    yield "Whitespace", "letters", {"pre_tokenizer": stage("Whitespace")}
    yield "WhitespaceSplit", "letters", {"pre_tokenizer": stage("WhitespaceSplit")}
    for scheme in ("first", "never", "always"):
        for splits in (True, False):
            metaspace = stage("Metaspace", replacement="▁", prepend_scheme=scheme, split=splits)
            tokens = added(sizes["fused"], ("<s>", "special"), ("the e",))
            yield "Metaspace", "fused", {"pre_tokenizer": metaspace, "decoder": metaspace, "added_tokens": tokens}
            words = stage("Sequence", pretokenizers=[stage("WhitespaceSplit"), metaspace])
            yield "Metaspace of words", "unigram", {"pre_tokenizer": words, "decoder": metaspace}
    size = sizes["bytes"]
    tokens = added(size, ("<s>", "special"), ("</s>", "special"), ("<mask>", "lstrip", "special"), ("<r>", "rstrip"), ("ab1", "single_word"), ("  ", "normalized"))
    for space, regex, trim in ((True, True, True), (False, True, False), (True, False, True), (False, False, True)):
        level = stage("ByteLevel", add_prefix_space=space, trim_offsets=trim, use_regex=regex)
        yield "ByteLevel", "bytes", {"pre_tokenizer": level, "post_processor": level, "decoder": level, "added_tokens": tokens}
        roberta = stage("RobertaProcessing", sep=["</s>", size + 1], cls=["<s>", size], trim_offsets=trim, add_prefix_space=space)
        yield "RobertaProcessing", "bytes", {"pre_tokenizer": level, "post_processor": roberta, "added_tokens": tokens}
    bert = stage("BertProcessing", sep=["</s>", size + 1], cls=["<s>", size])
    yield "BertProcessing", "bytes", {"normalizer": stage("ByteLevel"), "post_processor": bert, "added_tokens": tokens}
    parts = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 3}}, {"SpecialToken": {"id": "two", "type_id": 1}}]
    special = {"<s>": {"id": "<s>", "ids": [size], "tokens": ["<s>"]}, "two": {"id": "two", "ids": [size, size + 1], "tokens": ["<s>", "</s>"]}}
    template = stage("TemplateProcessing", single=parts, pair=[*parts, {"Sequence": {"id": "B", "type_id": 1}}], special_tokens=special)
    processors = stage("Sequence", processors=[level, template])
    yield "TemplateProcessing", "bytes", {"pre_tokenizer": level, "post_processor": processors, "added_tokens": tokens}
    replace = stage("Replace", pattern={"String": "▁"}, content=" ")
    decoders = [replace, stage("ByteFallback"), stage("Fuse"), stage("Strip", content=" ", start=1, stop=0)]
    yield "ByteFallback", "fallback", {"normalizer": prepend, "decoder": stage("Sequence", decoders=decoders)}
    yield "some bytes", "some bytes", {"decoder": stage("ByteFallback")}
    yield "no unknown token", "no unknown", {}
    yield "continuing_subword_prefix", "prefixed", {"pre_tokenizer": stage("WhitespaceSplit"), "decoder": stage("WordPiece", prefix="##", cleanup=True)}
    yield "end_of_word_suffix", "suffixed", {"pre_tokenizer": stage("Whitespace"), "decoder": stage("BPEDecoder", suffix="</w>")}
    yield "ignore_merges", "whole words", {"pre_tokenizer": stage("WhitespaceSplit")}
    yield "repeats", "repeats", {}
    yield "Unigram", "unigram bytes", {"normalizer": stage("NFKC"), "decoder": stage("Sequence", decoders=[stage("ByteFallback"), metaspace])}
    yield "Unigram joins what is unknown", "joined", {}
    for decoder in (stage("Fuse"), stage("BPEDecoder", suffix="b")):
        yield decoder["type"], "padded", {"decoder": decoder}
    several = added(sizes["letters"], ("<s>", "special"), ("<s>xx", "special"), ("Ab", "normalized", "single_word"), ("<mask>", "lstrip", "special"),
                    ("<r>", "lstrip", "rstrip", "normalized"), (" x",), ("ﬁ", "normalized"))
    for normalizer in (None, stage("Lowercase"), prepend, stage("NFKC")):
        yield "added tokens", "letters", {"normalizer": normalizer, "added_tokens": several}
    for pattern in (r" ?[^(\s|[.,!?…。，、।۔،])]+", r"\d{1,3}(?=(?:\d{3})*\b)", r"\Ba|\bt"):
        yield "Split by words", "words", {"pre_tokenizer": split({"Regex": pattern}, "Isolated")}
    level, spaces = stage("ByteLevel", add_prefix_space=False, trim_offsets=True), split({"String": " "}, "Isolated")
    yield "ByteLevel of a Unigram's bytes", "unigram bytes", {"pre_tokenizer": spaces, "post_processor": level}
    empty = stage("Sequence", decoders=[stage("Fuse"), stage("Replace", pattern={"Regex": "^"}, content="-")])
    yield "Replace in an empty text", "no unknown", {"decoder": empty}


def text(draw):
    count = draw.choice([1, 2, 3, 5, 8, 13])
    return "".join(draw.choice(FRAGMENTS) if draw.random() < 0.85 else draw.choice(LETTERS) for _ in range(count))


def main():
    draw = random.Random(1)
    known = models()
    sizes = {name: len(model["vocab"]) for name, model in known.items()}
    lines = [known]
    for name, model, stages in tokenizers(sizes):
        rest = {key: stages.get(key) for key in ("normalizer", "pre_tokenizer", "post_processor", "decoder")}
        tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": stages.get("added_tokens", [])} | rest
        theirs = Tokenizer.from_str(json.dumps(tokenizer | {"model": known[model]}))
        lines.append({"name": name, "tokenizer": tokenizer | {"model": model}})
        for _ in range(TEXTS):
            string = text(draw)
            plain, special = theirs.encode(string, add_special_tokens=False), theirs.encode(string)
            decoded = theirs.decode(plain.ids, skip_special_tokens=False)
            lines.append([string, plain.ids, plain.offsets, special.ids, decoded, theirs.decode(special.ids, skip_special_tokens=True)])
    written = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (GOLDEN / "tokenizer_stages.jsonl").write_text(written, encoding="utf-8")


main()
