"""Tests the computations of lab/compare, lab/scaling and lab/overlap, and runs them on a small model, without peers.

test_comparison.py MYLOS
"""

import dataclasses
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import xml.dom.minidom

sys.dont_write_bytecode = True
LAB = pathlib.Path(__file__).resolve().parents[2] / "lab"
sys.path.insert(0, str(LAB))
from comparison import environment, games, models, mylos, others, peer, pictures, plot, questions, results, scaling, training

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "which", "mill", "?", "the", "a"]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def article(count):
    """Returns the content of a nested SQuAD file: `count` questions on contexts of different lengths."""
    paragraphs = [{"context": " ".join(["mill"] * (number + 1)),
                   "qas": [{"id": f"q{number}", "question": "which mill ?", "answers": [{"text": "mill", "answer_start": 0}]}]}
                  for number in range(count)]
    return {"version": "1.1", "data": [{"title": "mills", "paragraphs": paragraphs}]}


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.directory = pathlib.Path(self.folder.name)
        self.vocabulary = self.write_vocabulary(self.directory)

    @staticmethod
    def write_vocabulary(folder):
        file = folder / "words.txt"
        file.write_text("\n".join(WORDS) + "\n")
        return file

    @classmethod
    def shared_folder(cls):
        """Returns a directory for what the tests of a class only read."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        return pathlib.Path(folder.name)


class Results(unittest.TestCase):
    def test_ratio_of_each_round(self):
        found = results.Results()
        found.ratio("training", "peer", [10.0, 30.0, 20.0], [5.0, 10.0, 20.0])
        self.assertEqual(found.ratios[0]["samples"], [2.0, 3.0, 1.0])
        self.assertRegex(results.report(found), r"\| training +\| peer +\| 2\.00x +\| 1\.00 to 3\.00 ")

    def test_rejects_different_losses(self):
        found = results.Results()
        found.check("losses", [1.0], [1.0005], 1e-3)
        with self.assertRaisesRegex(ValueError, "differ by"):
            found.check("losses", [1.0], [1.002], 1e-3)
        with self.assertRaisesRegex(ValueError, "differ by nan"):
            found.check("losses", [1.0, 1.0], [float("nan"), 1.0], 1e-3)


class Models(Scratch):
    def test_random_bert_has_every_tensor_once(self):
        folder = models.make_random_bert(self.directory / "model", self.vocabulary, SMALL)
        tensors = list(models.read_safetensors(folder / "model.safetensors"))
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual([name for name, _, _ in tensors], [name for name, _ in models.shapes(config)])
        for name, shape, data in tensors:
            self.assertEqual(len(data), 4 * shape[0] * (shape[1] if len(shape) > 1 else 1), name)

    def test_values_continue_and_repeat(self):
        values = models.Values(3)
        first, second = values.take(5), values.take(models.BLOCK)
        self.assertEqual(second[-20:], first)


class Batches(Scratch):
    @classmethod
    def setUpClass(cls):
        folder = cls.shared_folder()
        cls.model = models.make_random_bert(folder / "model", cls.write_vocabulary(folder), SMALL)
        source = folder / "squad.json"
        source.write_text(json.dumps(article(60)))
        cls.data = questions.TrainingSet(sys.argv[1], cls.model, source, folder, batches=6)

    def test_window_tokens_match_the_program(self):
        self.assertEqual({self.data.tokens[f"q{number}", 0] - number for number in range(60) if (f"q{number}", 0) in self.data.tokens}, {7})

    def test_batches_wrap_around(self):
        self.assertEqual(self.data.batches(5, 2), [self.data.order[5], self.data.order[0]])

    def test_rotated_order_has_every_batch(self):
        lines = self.data.write_order(self.directory / "later.jsonl", 4).read_text().splitlines()
        self.assertEqual([[tuple(window) for window in json.loads(line)] for line in lines], [*self.data.order[4:], *self.data.order[:4]])

    def test_turns_use_every_group_once(self):
        groups = [tuple(batch) for turn in range(3) for batch in self.data.grouped(turn, 3, 2)]
        self.assertEqual(len(set(groups)), 6)
        self.assertEqual(len({window for batch in groups for window in batch}), 48)

    def test_mylos_follows_the_order(self):
        output = self.directory / "run"
        mylos.run(mylos.training_command(sys.argv[1], self.model, self.data, output, 3), threads=1)
        tokens = [sum(self.data.tokens[window] for window in batch) for batch in self.data.batches(0, 3)]
        self.assertEqual([step["tokens"] for step in mylos.steps_of(output)], tokens)

    def test_standing_run_continues_in_each_turn(self):
        command = mylos.training_command(sys.argv[1], self.model, self.data, self.directory / "run", mylos.MANY_STEPS)
        with mylos.StandingRun(command, self.directory / "run", 1, self.directory / "log") as run:
            first, records = run.turn(4)
            again, _ = run.turn(4)
        self.assertEqual([record["step"] for record in records], [first + number for number in range(1, 5)])
        self.assertGreaterEqual(again, first + 4 + mylos.StandingRun.UNRECORDED)

    def test_program_of_before_takes_turns(self):
        session = types.SimpleNamespace(programs={"Mylos": sys.argv[1], training.BEFORE: sys.argv[1]}, rounds=1, threads=2,
                                        results=results.Results(), scratch=lambda name: self.directory / name)
        training.threads(session, training.Subject("small", self.model, self.data, 2))
        self.assertEqual([(ratio["what"], ratio["against"]) for ratio in session.results.ratios],
                         [("small training, 2 threads", "1 thread"), ("small training, 2 threads, before", "1 thread"),
                          ("small training, 2 threads", training.BEFORE), ("small training, 1 thread", training.BEFORE)])
        self.assertEqual(len(session.results.checks), 6)

    def test_evaluation_is_compared_with_each_engine(self):
        session = types.SimpleNamespace(programs={"Mylos": "mylos"}, program="mylos", data=self.directory, threads=1, rounds=2,
                                        results=results.Results(), scratch=lambda name: self.directory / name)
        done = {"loss": 1.0, "windows": 4, "seconds": 2.0}
        with unittest.mock.patch.multiple(others, first_questions=unittest.mock.DEFAULT, say_rates=unittest.mock.DEFAULT,
                                          start_engines=lambda *_: dict.fromkeys(others.ENGINES),
                                          evaluate=lambda *_: done, predict=lambda *_: {**done, "seconds": 1.0}):
            others.evaluation(session, types.SimpleNamespace(name="model", model=None), 3)
        self.assertEqual({ratio["against"]: ratio["samples"] for ratio in session.results.ratios},
                         dict.fromkeys(others.ENGINES, [0.5, 0.5]))

    def test_failed_run_reports_the_error(self):
        with self.assertRaisesRegex(RuntimeError, "no model"):
            mylos.run(mylos.training_command(sys.argv[1], "no-such-model", self.data, self.directory / "run", 1), threads=1)


class Games(Scratch):
    @classmethod
    def setUpClass(cls):
        folder = cls.shared_folder()
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24,
                 "vocab_size": 40}
        cls.model = models.make_random_llama(folder / "model", None, shape)
        file = folder / "games.jsonl"
        file.write_text("".join(json.dumps({"input_ids": [3 + number % 30] * (2 + number)}) + "\n" for number in range(19))
                        + json.dumps({"input_ids": [5] * 600}) + "\n")
        cls.data = games.GameSet(sys.argv[1], cls.model, file, folder, batches=4, size=4)

    def test_random_llama_has_every_tensor_once_and_norms_of_one(self):
        tensors = list(models.read_safetensors(self.model / "model.safetensors"))
        config = json.loads((self.model / "config.json").read_text())
        self.assertEqual([(name, tuple(shape)) for name, shape, _ in tensors], list(models.llama_shapes(config)))
        ones = {name for name, shape, data in tensors if data == struct.pack("<f", 1.0) * shape[0]}
        self.assertEqual(ones, {name for name, shape, _ in tensors if len(shape) == 1})

    def test_game_tokens_match_the_program(self):
        self.assertEqual(self.data.tokens, [4 + number for number in range(19)] + [512], "with BOS and EOS, or cut")

    def test_batches_do_not_share_games(self):
        drawn = [game for batch in self.data.order for game in batch]
        self.assertEqual((len(set(drawn)), {len(batch) for batch in self.data.order}), (16, {4}))

    def test_mylos_follows_the_order(self):
        output = self.directory / "run"
        mylos.run(mylos.training_command(sys.argv[1], self.model, self.data, output, 3), threads=1)
        tokens = [sum(self.data.tokens[game] for game in batch) for batch in self.data.batches(0, 3)]
        self.assertEqual([step["tokens"] for step in mylos.steps_of(output)], tokens)


class Ways(unittest.TestCase):
    def test_grouped_configurations_are_tuned(self):
        self.assertEqual(len(training.GROUPED), 2)
        for name in training.GROUPED:
            self.assertTrue(training.WAYS[name].tuned and training.WAYS[name].contends)
        self.assertEqual(training.WAYS[training.TUNED], dataclasses.replace(training.WAYS[training.INSTALLED], tuned=True))

    def test_image_configurations_run_tuned_and_as_installed(self):
        for name in ("PyTorch, channels-last", "PyTorch, channels-last, autocast"):
            way = training.WAYS[name]
            self.assertTrue(way.contends and not way.tuned)
            self.assertEqual(training.WAYS[f"{name}, tuned"], dataclasses.replace(way, tuned=True))


class Pictures(Scratch):
    @classmethod
    def setUpClass(cls):
        cls.model = models.make_random_resnet(cls.shared_folder() / "model", "resnet18", 10, "cifar")

    def test_random_resnet_has_the_tensors_of_torchvision(self):
        tensors = {name: (tuple(shape), data) for name, shape, data in models.read_safetensors(self.model / "model.safetensors")}
        self.assertEqual(len(tensors), 20 * 5 + 2, "convolutions with their norms, and the last layer")
        self.assertEqual(tensors["layer2.0.downsample.0.weight"][0], (128, 64, 1, 1))
        self.assertNotIn("layer1.0.downsample.0.weight", tensors)
        scale = lambda name: struct.unpack_from("<f", tensors[name][1])[0]
        self.assertEqual((scale("layer1.0.bn1.weight"), scale("layer1.0.bn1.running_var"), scale("layer1.0.bn1.bias")), (1, 1, 0))
        self.assertAlmostEqual(scale("layer1.0.bn2.weight"), models.BRANCH)

    def test_bottlenecks_project_in_the_first_stage(self):
        shapes = dict(models.resnet_shapes("resnet50", 1000, "imagenet"))
        self.assertEqual(len(shapes), 53 * 5 + 2)
        self.assertEqual(shapes["layer1.0.downsample.0.weight"], (256, 64, 1, 1))
        self.assertEqual(shapes["layer4.2.conv3.weight"], (2048, 512, 1, 1))

    def test_mylos_follows_the_order(self):
        data = pictures.PictureSet(self.directory / "data", 8, 4)
        self.assertEqual(sorted(image for batch in data.order for image in batch), list(range(pictures.COUNT)))
        mylos.run(mylos.training_command(sys.argv[1], self.model, data, self.directory / "run", 2, "--labels", "10"), threads=1)
        self.assertEqual([step[data.counts] for step in mylos.steps_of(self.directory / "run")], [4, 4])


class PeerGroups(Scratch):
    def setUp(self):
        super().setUp()
        self.script = self.directory / "peer.py"
        self.script.write_text(f"""
import os, sys
sys.path.insert(0, {str(environment.PEERS)!r})
from serving import serve
def rank(): return {{"rank": os.environ["RANK"], "of": os.environ["WORLD_SIZE"], "port": os.environ["MASTER_PORT"]}}
def end(which): os.environ["RANK"] == which and os._exit(1)
serve({{"rank": rank, "end": end}})
""")

    def test_processes_get_rank_world_size_and_port(self):
        with peer.PeerGroup(sys.executable, self.script, 2, self.directory / "log") as group:
            replies = group.ask("rank")
        self.assertEqual([(reply["rank"], reply["of"]) for reply in replies], [("0", "2"), ("1", "2")])
        self.assertEqual(replies[0]["port"], replies[1]["port"])

    def test_group_ends_with_a_failed_process(self):
        with self.assertRaisesRegex(environment.PeersMissing, "log.1"):
            with peer.PeerGroup(sys.executable, self.script, 2, self.directory / "log") as group:
                group.ask("end", which="1")
        self.assertNotIn(None, [one.process.returncode for one in group.peers])


class Overlap(Scratch):
    """Three steps of a rank, 100 ms each: 40 ms forward, 40 ms backward, 10 ms of waiting for sums, 10 ms of update."""

    def setUp(self):
        super().setUp()
        events = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}}]
        span = lambda lane, name, begin, end: {"ph": "X", "pid": 0, "tid": lane, "name": name, "ts": 1000 * begin, "dur": 1000 * (end - begin)}
        for start in (0, 100, 200):
            events += [span(0, "first", start, start + 20), span(0, "last <>", start + 20, start + 60), span(0, "first", start + 60, start + 80),
                       span(1, "sums of gradients", start + 80, start + 90), span(2, "exchange all-reduce of gradients of first", start + 60, start + 90)]
        events.append(span(2, "exchange broadcast of tensors", 300, 400))  # saves a checkpoint, so it belongs to no step
        self.trace = self.directory / "trace.json"
        self.trace.write_text(json.dumps({"traceEvents": events}))

    def overlap(self, *words):
        return subprocess.run([sys.executable, "-B", LAB / "overlap", self.trace, *words], capture_output=True, text=True)

    def test_overlap_share_of_whole_steps(self):
        done = self.overlap()
        self.assertEqual(done.stdout.splitlines()[1].split(), "0 1 0.10 s 0.030 s 66.7 % 10.0 %".split(), done.stderr)

    def test_picture_is_valid_xml(self):
        picture = self.directory / "picture.svg"
        self.assertEqual(self.overlap("--picture", picture).returncode, 0)
        titles = [title.firstChild.data for title in xml.dom.minidom.parse(str(picture)).getElementsByTagName("title")]
        self.assertEqual(titles, ["first: 20.0 ms", "last <>: 40.0 ms", "first: 20.0 ms", "sums of gradients: 10.0 ms",
                                  "exchange all-reduce of gradients of first: 30.0 ms"])

    def test_rejects_a_short_trace(self):
        events = json.loads(self.trace.read_text())["traceEvents"]
        self.trace.write_text(json.dumps({"traceEvents": events[:6]}))
        self.assertIn("train 3 or more", self.overlap().stderr)


class Floor(Scratch):
    def floor(self, kernels, *words):
        step = self.directory / "step.json"
        step.write_text(json.dumps({"tokens": 1000.0, "seconds": 2.0, "gflops": 50.0, "breakdown": {"kernels": kernels}}))
        return subprocess.run([sys.executable, "-B", LAB / "floor", step, "--tflops", "1", "--gbytes", "100", *words], capture_output=True, text=True)

    def test_kernel_time_is_the_larger_of_compute_and_memory_time(self):
        row = lambda name, flops, moved, calls=1.0: {"name": name, "calls": calls, "flops": flops, "bytes": moved}
        kernels = [row("qkv/forward by onednn", 50e9, 1e9, 12.0), row("qkv/input-gradient by onednn", 1e9, 2e9),
                   row("mylos::Attention::backward", 50e9, 0.0), row("mylos::optimizer::adamw", 1e15, 1e9), row("copy to mylos::Batch", 0.0, 1e12),
                   row("mylos::activation::gelu", 0.0, 0.5e9), {"name": "mylos::unknown", "calls": 3.0}]
        done = self.floor(kernels)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = dict(re.findall(r"^\| ([a-z ]+?) \| .* ([\d.]+) \| [^|]*\|$", done.stdout, re.MULTILINE))
        self.assertEqual(shown, {"matrix products": "70.00", "attention": "70.00", "other kernels": "5.00", "update": "10.00", "together": "155.00"})
        self.assertIn("6,452 tokens/s", done.stdout)
        self.assertIn("65%", done.stdout)
        self.assertIn(" 155.02 ", self.floor(kernels, "--launch", "1").stdout)
        self.assertIn(" 225.00 ", self.floor(kernels, "--attention-tflops", "0.5").stdout)

    def test_rejects_files_without_a_breakdown(self):
        for kernels in ([{"calls": 1}], None):
            self.assertIn("not what mylos bench step", self.floor(kernels).stderr)


class PredictedScaling(Scratch):
    def predict(self, *words):
        output = self.directory / "scaling.json"
        done = subprocess.run([sys.executable, "-B", LAB / "predict_scaling", "--program", sys.argv[1], "--models", "bert-base", "--output", output,
                               *words], capture_output=True, text=True)
        return done, json.loads(output.read_text()) if done.returncode == 0 else None

    def test_bytes_efficiencies_and_step_times_are_consistent(self):
        done, found = self.predict("--step-ms", "30,300", "--most", "8", "--published", "replicated:2:1.3,replicated:2:1.67,replicated:2:2.5",
                                   "--published-link", "10,20")
        self.assertEqual(done.returncode, 0, done.stderr)
        parameters = sum(math.prod(shape) for _, shape in models.shapes({**models.BERT_BASE, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2}))
        sent = {row["mode"]: row["sent"] for row in found["sent"]}
        self.assertAlmostEqual(sent["replicated"]["8"] / (2 * 7 / 8 * 4 * parameters), 1, places=4)
        self.assertAlmostEqual(sent["sharded-optimizer"]["8"] / (7 / 8 * 6 * parameters), 1, places=4)
        self.assertEqual(list(sent["hybrid"]), ["8"])
        shares = {(row["mode"], row["step"], row["network"]): row["efficiency"]["8"] for row in found["efficiency"]}
        self.assertLess(shares["replicated", "30 ms", 25], shares["replicated", "300 ms", 25])
        self.assertLess(shares["replicated", "30 ms", 25], shares["replicated", "30 ms", 100])
        times = {(row["link"], row["published"]): row["seconds"] for row in found["published"]}
        self.assertLess(times[10, 1.3], times[10, 1.67])
        self.assertLess(times[20, 1.67], times[10, 1.67])
        # The speedup is below 2 because communication slows computation beside it to half, and nothing overlaps with the embeddings' sum.
        exchange, last = (4 * count / 10e9 for count in (parameters, (30522 + 512 + 2 + 2) * 768))
        lacking = (2 / 1.67 - 1) * times[10, 1.67]
        self.assertLess(abs(lacking / (last + 0.5 * (exchange - last)) - 1), 0.05)
        self.assertIsNone(times[10, 2.5])
        self.assertIn("none", done.stdout)

    def test_measured_step_replaces_assumed_ones(self):
        measured = self.directory / "measured.json"
        calibration = {"device": "NVIDIA A100-SXM4-40GB", "host": False, "threads": 8, "precision": "bfloat16",
                       "parameters": 108893186, "flops_per_row": 5.1e8, "flops_per_second": 1e14, "bytes_per_second": 1.2e12}
        measured.write_text(json.dumps({"calibration": calibration}))
        done, found = self.predict("--bench", measured, "--published", "replicated:2:1.5", "--published-link", "10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["step"] for row in found["efficiency"]}, {"measured"})
        self.assertGreater(found["steps"][0]["measured"], found["steps"][0]["assumed"])  # 100 TFLOP/s were measured, 125 are assumed
        measured.write_text(json.dumps({"calibration": {**calibration, "parameters": 512}}))
        self.assertRegex(self.predict("--bench", measured)[0].stderr, "a model of 512 parameters is neither bert-base, bert-large nor minilm")
        del calibration["parameters"]
        measured.write_text(json.dumps({"calibration": calibration}))
        self.assertRegex(self.predict("--bench", measured)[0].stderr, "an earlier program wrote this calibration")

    def test_rejects_a_step_shorter_than_its_optimizer(self):
        self.assertRegex(self.predict("--step-ms", "1")[0].stderr, r"the optimizer alone takes 3\.\d ms; give a longer --step-ms")


class Scaling(Scratch):
    def test_texts_have_the_requested_length(self):
        laboratory = scaling.Laboratory(sys.argv[1], self.vocabulary, self.directory, 1)
        self.assertGreater(laboratory.seconds({"length": 40, "batch": 3, "layers": 1}, 2), 0)

    def test_fit_recovers_the_coefficients(self):
        law = [0.02, 0.001, 2e-5, 3e-8]
        points = [point for points in scaling.sweeps().values() for point in points]
        for point in points:
            point["seconds"] = scaling.predicted(law, point)
        found, deviations = scaling.fit(points)
        self.assertLess(max(map(abs, deviations)), 1e-6)
        for value, expected in zip(found, law):
            self.assertAlmostEqual(value / expected, 1, places=4)

    def test_plot_is_valid_xml_with_every_point(self):
        panel = plot.Panel("a < b", "x", "y", [(1, 2.0), (2, 5.0)], [(1, 2.0), (2, 5.0)])
        drawn = xml.dom.minidom.parseString(plot.row_of_plots([panel, panel]))
        self.assertEqual(len(drawn.getElementsByTagName("circle")), 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
