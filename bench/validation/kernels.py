"""Runs the programs of bench/ in the bundle: kernels that move bytes, and attention."""

import json

from validation.commands import Failed, succeed

LIMIT = 60
# Targets of kernels that move bytes: from this size on a share of the rate of a copy; below it the time of a launch beyond that of its
# bytes at the rate of memory. The report shows them; they are no checks.
LARGE, SHARE, OVER = 250e6, 0.8, 5e-6


def bench(session, clock, program, *words):
    """Runs a program and returns the JSON that it prints. Errors: Failed, OutOfTime."""
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        raise Failed(f"{program} is not in the bundle; make it again with scripts/bundle-gpu")
    return json.loads(succeed([path, *words, "--json"], clock.limit(LIMIT), session.names).output)


def is_as_asked(row):
    return row["share_of_copy"] >= SHARE if row["bytes"] >= LARGE else row["over_seconds"] <= OVER * row["launches"]


def traffic(session, clock, precision):
    found = bench(session, clock, "bench_kernels", "--precision", precision, "--sizes", ",".join(map(str, session.sizes.traffic)),
                  "--repeats", session.sizes.repeats)
    for copy in found["copies"]:
        session.record.figure("copies", precision=precision, **copy)
    for row in found["kernels"]:
        session.record.figure("traffic", **row, as_asked=is_as_asked(row))


def attention(session, clock, name, precision, dropout):
    """Returns a row for each attention kernel of the build, over lengths of SQuAD, with the heads of a model."""
    sizes = session.sizes
    return bench(session, clock, "bench_attention", "--lengths", ",".join(map(str, sizes.attention_lengths)), "--heads", sizes.attention_heads[name],
                 "--head-size", sizes.attention_head_size, "--precision", precision, "--dropout", dropout, "--repeats", sizes.repeats)["attention"]


def time_long_attention(session, clock, precision):
    """Times causal attention of Llama's heads over long texts, by the kernels that are not a hundred times slower there."""
    sizes, kernels = session.sizes, session.library_attentions(precision) + session.attentions(precision)
    for lengths in sizes.long_attention:
        rows = bench(session, clock, "bench_attention", "--lengths", ",".join(map(str, lengths)), "--heads", 32, "--key-value-heads", 8,
                     "--head-size", 128, "--mask", "causal", "--precision", precision, "--dropout", 0, "--repeats", sizes.repeats,
                     "--kernel", ",".join(kernels[:-1] or kernels))["attention"]
        for row in rows:
            session.record.figure("attention", model=f"heads of 128, {len(lengths)} x {lengths[0]}",
                                  **{key: row[key] for key in ("kernel", "precision", "dropout", "forward", "backward")})


def time_attention(session, clock, name, precision):
    for row in attention(session, clock, name, precision, "0,0.1"):
        session.record.figure("attention", model=name, **{key: row[key] for key in ("kernel", "precision", "dropout", "forward", "backward")})
