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
        raise Failed(f"{program} is not in the bundle; make it again with lab/bundle-gpu")
    return json.loads(succeed([path, *words, "--json"], clock.limit(LIMIT), session.names).output)


def is_as_asked(row):
    return row["share_of_copy"] >= SHARE if row["bytes"] >= LARGE else row["over_seconds"] <= OVER * row["launches"]


def traffic(session, clock, precision, *only):
    """Times one kernel, or all of them."""
    found = bench(session, clock, "bench_kernels", "--precision", precision, "--sizes", ",".join(map(str, session.sizes.traffic)),
                  "--repeats", session.sizes.repeats, *(["--only", *only] if only else []))
    for copy in found["copies"]:
        session.record.figure("copies", precision=precision, **copy)
    for row in found["kernels"]:
        session.record.figure("traffic", **row, as_asked=is_as_asked(row))


def attention(session, clock, name, precision, dropout):
    """Returns a row for each attention kernel of the build, over lengths of SQuAD, with the heads of a model."""
    sizes = session.sizes
    return bench(session, clock, "bench_attention", "--lengths", ",".join(map(str, sizes.attention_lengths)), "--heads", sizes.attention_heads[name],
                 "--head-size", sizes.attention_head_size, "--precision", precision, "--dropout", dropout, "--repeats", sizes.repeats)["attention"]


def time_attention(session, clock, name, precision):
    record_attention(session, name, attention(session, clock, name, precision, "0,0.1"))


def time_long_attention(session, clock, name, precision, kernel):
    """Times one kernel of causal attention over long sequences."""
    heads, key_value_heads, size = session.sizes.long_heads
    found = bench(session, clock, "bench_attention", "--lengths", ",".join(map(str, session.sizes.long_attention[name])), "--heads", heads,
                  "--key-value-heads", key_value_heads, "--head-size", size, "--mask", "causal", "--precision", precision, "--dropout", "0",
                  "--kernel", kernel, "--repeats", session.sizes.repeats)["attention"]
    record_attention(session, f"heads of {size}, {name}", found)


def record_attention(session, name, found):
    for row in found:
        session.record.figure("attention", model=name, **{key: row[key] for key in ("kernel", "precision", "dropout", "forward", "backward")})
