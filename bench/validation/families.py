"""Part 1: checks that GPU and CPU compute the same losses of Llamas and of a ResNet, with each kernel and library that may compute them."""

import functools

from comparison import games, models, pictures
from comparison.mylos import training_command
from validation.agreement import RUN_LIMIT, compare_losses, losses
from validation.commands import succeed
from validation.jobs import run_jobs

PART = "agreement of families"
PIECES = 512  # of the tokenizer of examples/chess
HEADS = 4
HEAD_SIZES = (64, 128)


class Family:
    """A model with random weights, batches in a fixed order, and the options of train that choose what computes it."""

    def __init__(self, session, clock, name, model, data, option):
        self.session, self.clock, self.name, self.model, self.data, self.option = session, clock, name, model, data, option

    def train(self, build, precision, choice):
        """Trains with the program of `build`. Returns the losses."""
        session = self.session
        output = session.scratch / f"{build}-{self.name.replace(' ', '-')}-{precision}-{choice}"
        command = training_command(session.bundle.program(build), self.model, self.data, output, session.sizes.agreement_steps,
                                   "--precision", precision, self.option, choice)
        succeed(command, self.clock.limit(RUN_LIMIT), session.names_of(build))
        return losses(output)

    def agree(self, precision, choices, host_choice):
        """Compares the losses of the GPU by each of `choices` with those of the CPU."""
        theirs = self.train("cpu", precision, host_choice)
        for choice in choices:
            what = f"losses of {self.name} by {choice} and of the CPU, {precision}"
            compare_losses(self.session, PART, what, self.train("gpu", precision, choice), theirs, precision)


def texts(session, clock, head_size):
    """Returns a small Llama whose heads have this size."""
    sizes, name = session.sizes, f"Llama with heads of {head_size}"
    folder = session.scratch / f"family-llama-{head_size}"
    shape = {"hidden_size": HEADS * head_size, "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2, "num_hidden_layers": 2,
             "intermediate_size": 8 * head_size, "vocab_size": PIECES}
    model = models.make_random_llama(folder / "model", session.root / "examples/chess/model", shape, sizes.family_tokens)
    count = sizes.agreement_steps * sizes.agreement_batch
    source = games.write_random_ids(folder / "texts.jsonl", count, sizes.family_tokens, PIECES)
    data = games.GameSet(str(session.bundle.program("cpu")), model, source, folder, sizes.agreement_steps, size=sizes.agreement_batch,
                         max_length=sizes.family_tokens, environment=session.names_of("cpu"))
    return Family(session, clock, name, model, data, "--attention")


def images(session, clock):
    sizes, folder = session.sizes, session.scratch / "family-resnet"
    model = models.make_random_resnet(folder / "model", sizes.resnet, pictures.LABELS)
    batch = 2 * sizes.agreement_batch
    data = pictures.PictureSet(folder, sizes.family_pixels, batch, count=sizes.agreement_steps * batch)
    return Family(session, clock, sizes.resnet, model, data, "--gemm")


def jobs_of(session, clock):
    """Yields (name, job). Attention by cuDNN and by tensor cores is for 16 bits, so these come first."""
    llama = functools.cache(lambda size: texts(session, clock, size))
    resnet = functools.cache(lambda: images(session, clock))
    for precision in reversed(session.sizes.precisions):
        attentions = session.library_attentions(precision) + session.attentions(precision)
        for size in HEAD_SIZES:
            yield (f"families llama {size} {precision}",
                   lambda size=size, precision=precision, kernels=attentions: llama(size).agree(precision, kernels, "portable"))
        yield f"families resnet {precision}", lambda precision=precision: resnet().agree(precision, session.convolutions(), "auto")


def families(session, clock):
    if session.wants("families"):
        run_jobs(session, "tests", PART, jobs_of(session, clock))
