"""Times matrix products, kernels and training steps, and compares them with peak rates of the same run."""

import functools
import json
import re
import statistics
import subprocess
import threading

from comparison import games
from comparison.mylos import steps_of
from validation import kernels
from validation.commands import Failed, succeed
from validation.jobs import run_jobs
from validation.sizes import BY_NEED
from validation.target import nvidia_smi

PART = "timing"
LIMIT = 120


class Timing:
    def __init__(self, session, clock):
        self.session, self.clock, self.sizes = session, clock, session.sizes
        self.program = session.bundle.program("gpu")
        self.peaks = {}  # precision -> GFLOP/s

    def json(self, *words):
        return json.loads(succeed([self.program, *words, "--json"], self.clock.limit(LIMIT), self.session.names).output)

    def providers(self, rounded=True):
        """Returns the providers to time: the vendor's if there are any, else all. `rounded`: include those that round float operands."""
        known = json.loads(succeed([self.program, "info", "--json"], self.clock.limit(60), self.session.names).output)["gemm_providers"]
        names = [name for name in known if name.startswith("cublas")] or known
        return ",".join(name for name in names if rounded or not name.endswith("tf32"))

    # Products

    def products(self, shapes, tokens, precision, table):
        words = ["bench", "gemm", "--shapes", shapes, "--tokens", str(tokens), "--precision", precision, "--repeats", str(self.sizes.repeats),
                 "--providers", self.providers()]
        rows = self.json(*words)["products"]
        for row in rows:
            self.session.record.figure(table, shapes=shapes, tokens=tokens, **{key: row[key] for key in (
                "product", "m", "n", "k", "precision", "provider", "seconds", "gflops")})
        return rows

    def peak(self, precision):
        """Times products of many tokens and keeps the fastest as the peak. Float products on tensor cores have a peak of their own."""
        rows = [row for row in self.products(self.sizes.peak_shapes, self.sizes.peak_tokens, precision, "peak products")]
        for row in rows:
            name = "tf32" if row["provider"].endswith("tf32") and precision == "float" else precision
            self.peaks[name] = max(self.peaks.get(name, 0.0), row["gflops"])
        self.session.record.figure("peaks", precision=precision, gflops=self.peaks[precision])

    def shares(self):
        """Adds to each product its share of the peak. This is done last, when all peaks are known."""
        for row in self.session.record.rows("products"):
            name = "tf32" if row["provider"].endswith("tf32") and row["precision"] == "float" else row["precision"]
            if self.peaks.get(name):
                row["share_of_peak"] = row["gflops"] / self.peaks[name]

    # Steps

    def data_of(self, name):
        """Returns the size of a model's batch, its data, and more options of `mylos bench step`."""
        sizes = self.sizes
        if name in sizes.resnets:
            return sizes.resnet_batch, f"synthetic:{2 * sizes.resnet_batch}x{sizes.resnet_pixels}x{sizes.resnet_pixels}", []
        if name in sizes.llamas:
            texts = self.session.scratch / f"{name}-texts.jsonl"
            games.write_random_ids(texts, 2 * sizes.llama_batch, sizes.llama_tokens - 2, games.PIECES)  # two special tokens are added
            return sizes.llama_batch, texts, ["--max-length", sizes.llama_tokens]
        return sizes.batch, self.session.questions, ["--max-length", sizes.max_length, "--doc-stride", sizes.doc_stride]

    def step(self, name, precision, attention):
        """Times a step. `attention`: None for a model without it."""
        batch, data, options = self.data_of(name)
        words = ["--model", self.session.model(name), "--data", data, "--batch", batch, "--precision", precision, "--repeats", self.sizes.repeats,
                 *options, *(["--attention", attention] if attention else [])]
        record = self.json("bench", "step", "--breakdown", "--providers", self.providers(rounded=False), *map(str, words))
        unit = "images" if "images" in record else "tokens"
        breakdown = record["breakdown"]
        kernels = sum(row["seconds"] for row in breakdown["kernels"])
        row = {"model": name, "precision": precision, "attention": attention, "batch": batch, "unit": unit, "amount": record[unit],
               "seconds": record["seconds"], "rate": record[f"{unit}_per_second"], "gflops": record["gflops"], "share_of_gemm": record["share_of_gemm"],
               "idle_share_at_least": max(0.0, 1.0 - kernels / record["seconds"]), "gbytes_per_second_ceiling": breakdown["gbytes_per_second_ceiling"],
               "calibration": record["calibration"]}
        if self.peaks.get(precision):
            row["share_of_peak"] = record["gflops"] / self.peaks[precision]
        self.session.record.figure("steps", **row)
        for kernel in breakdown["kernels"]:
            self.session.record.figure("kernels", model=name, precision=precision, attention=attention, **kernel)

    def fastest(self, name, precision):
        """Returns the attention kernel of the fastest step that was timed, else the one that every build has."""
        rows = [row for row in self.session.record.rows("steps") if (row["model"], row["precision"]) == (name, precision)]
        return max(rows, key=lambda row: row["rate"])["attention"] if rows else "portable"

    def memory(self, name, precision):
        """Records planned and used memory of an ordinary run, and the share of its time in which the GPU was busy."""
        session, attention = self.session, self.fastest(name, precision)
        output = session.scratch / f"memory-{name}-{precision}-{attention}"
        command = [self.program, "train", "--model", session.model(name), "--train", session.questions, "--output", output, "--steps",
                   self.sizes.memory_steps, "--batch", self.sizes.batch, "--precision", precision, "--max-length", self.sizes.max_length,
                   "--doc-stride", self.sizes.doc_stride, "--attention", attention, "--checkpoint-every", "never"]
        said = succeed([*command, "--dry-run"], self.clock.limit(LIMIT), session.names)
        planned = planned_bytes(said.output + said.errors)
        with Utilization(session.gpu) as busy:
            succeed(command, self.clock.limit(LIMIT), session.names)
        steps = steps_of(output)[self.sizes.memory_steps // 2 :]
        taken = max(step["memory"] for step in steps)
        session.record.figure("memory", model=name, precision=precision, attention=attention, batch=self.sizes.batch, planned=planned, taken=taken,
                              tokens_per_second=sum(step["tokens"] for step in steps) / sum(step["seconds"] for step in steps),
                              busy=busy.share(sum(step["seconds"] for step in steps)))


UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def planned_bytes(text):
    """Returns the bytes of the line "memory   4.10 GiB at most: ..." that the program prints before it trains."""
    found = re.search(r"^memory +([\d.]+) (\w+)", text, re.MULTILINE)
    if not found or found[2] not in UNITS:
        raise Failed("train --dry-run did not say how much memory is planned")
    return float(found[1]) * UNITS[found[2]]


class Utilization:
    """Samples the utilization of nvidia-smi ten times per second. `gpu`: its UUID, or None."""

    def __init__(self, gpu):
        self.gpu = gpu

    def __enter__(self):
        self.samples, self.process = [], None
        if self.gpu is not None:
            command = [nvidia_smi(), "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100", "-i", self.gpu]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.reader.join(5)
            self.process.stdout.close()

    def share(self, seconds):
        """Returns the median of the samples in which a kernel ran, or None if there are too few."""
        running = [sample for sample in self.samples if sample > 0]
        return statistics.median(running) / 100 if len(running) >= 3 and seconds > 0.5 else None


def needed_jobs(timer, precision):
    """Returns the jobs (name, function, arguments) that come before all others, in one precision."""
    session, clock = timer.session, timer.clock
    one = lambda kernel: (f"kernel, {kernel}, {precision}", kernels.traffic, (session, clock, precision, kernel))
    step = lambda name, attention: (f"step, {name}, {precision}, {attention}", timer.step, (name, precision, attention))
    fast = [*session.library_attentions(precision), *session.attentions(precision)]
    quick = fast[:-1] or fast  # without the portable one, if there is another
    return [one("batch-norm"), one("batch-norm-gradient"), (f"peak, {precision}", timer.peak, (precision,)),
            *(step(name, None) for name in session.sizes.resnets),
            *(step(name, session.attentions(precision)[0]) for name in session.sizes.models),
            *(step(name, quick[0]) for name in session.sizes.llamas),
            *((f"attention, {name}, {precision}, {kernel}", kernels.time_long_attention, (session, clock, name, precision, kernel))
              for name in session.sizes.long_attention for kernel in quick),
            one("large-vocabulary-loss")]


def timing(session, clock):
    timer = Timing(session, clock)
    by_need = sorted(session.sizes.precisions, key=BY_NEED.index)
    traffic = [(f"kernels that move bytes, {precision}", kernels.traffic, (session, clock, precision)) for precision in by_need]
    jobs = needed_jobs(timer, by_need[0])
    jobs += [(f"peak, {precision}", timer.peak, (precision,)) for precision in by_need[1:]]
    jobs.append(traffic[0])
    for number, precision in enumerate(by_need):
        for name in session.sizes.models:
            for attention in session.attentions(precision)[0 if number else 1 :]:
                jobs.append((f"step, {name}, {precision}, {attention}", timer.step, (name, precision, attention)))
            jobs.append((f"memory, {name}, {precision}", timer.memory, (name, precision)))
            jobs.append((f"products, {name}, {precision}", timer.products,
                         (session.sizes.models[name], session.sizes.gemm_tokens, precision, "products")))
            jobs.append((f"attention, {name}, {precision}", kernels.time_attention, (session, clock, name, precision)))
        jobs += traffic[number : number + 1] if number else []
    run_jobs(session, "time", PART, [(name, functools.partial(job, *arguments)) for name, job, arguments in jobs], note_passed=True)
    timer.shares()
