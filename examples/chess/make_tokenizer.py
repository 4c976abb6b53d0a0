"""Writes model/tokenizer.model: SentencePiece BPE, trained on the moves of train.pgn.

    pip install sentencepiece==0.2.3 && python3 examples/chess/make_tokenizer.py
"""

import io
import pathlib
import re

import sentencepiece

HERE = pathlib.Path(__file__).resolve().parent


def read_games(path):
    """Yields the moves of each game as mylos reads them: without numbers, comments, variations and results."""
    for game in re.split(r"(?=^\[Event )", path.read_text(encoding="utf-8"), flags=re.M):
        moves = re.sub(r"^\[.*\]$", "", game, flags=re.M)
        moves = re.sub(r"\{[^}]*\}|\d+\.+", " ", moves).split()
        if moves:
            yield " ".join(move for move in moves if move not in ("1-0", "0-1", "1/2-1/2", "*"))


def main():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=read_games(HERE / "train.pgn"),
        model_writer=model,
        model_type="bpe",
        vocab_size=288,
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_by_number=False,  # "Nf3" may be one piece
        split_by_unicode_script=False,
        num_threads=1,
        minloglevel=1,
    )
    (HERE / "model/tokenizer.model").write_bytes(model.getvalue())


main()
