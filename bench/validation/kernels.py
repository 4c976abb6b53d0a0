"""Programs of bench/ in the bundle: kernels that move bytes, and attention."""

import json

from validation.commands import Failed, succeed

LIMIT = 60
# Asked of kernels that move bytes: from here on a share of what a copy reaches, below it time of a launch beyond the bytes at
# memory's rate. It is said in the report, and is no check.
LARGE, SHARE, OVER = 250e6, 0.8, 5e-6


def bench(session, clock, program, *words):
    """What the program printed as JSON. Errors: Failed, OutOfTime."""
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
    """Rows of each kernel that the build has, over lengths of SQuAD, with the heads of a model."""
    sizes = session.sizes
    return bench(session, clock, "bench_attention", "--lengths", ",".join(map(str, sizes.attention_lengths)), "--heads", sizes.attention_heads[name],
                 "--head-size", sizes.attention_head_size, "--precision", precision, "--dropout", dropout, "--repeats", sizes.repeats)["attention"]


def time_attention(session, clock, name, precision):
    for row in attention(session, clock, name, precision, "0,0.1"):
        session.record.figure("attention", model=name, **{key: row[key] for key in ("kernel", "precision", "dropout", "forward", "backward")})
