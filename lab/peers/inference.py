#!/usr/bin/env python3
"""Predicts a SQuAD file with PyTorch or ONNX Runtime. Reads commands from stdin (see serving.py)."""

import json
import pathlib
import time

import torch
from features import collate, load_windows, span_losses
from serving import serve
from transformers import BertForQuestionAnswering, logging

logging.set_verbosity_error()


class PyTorch:
    def __init__(self, model):
        self.model = BertForQuestionAnswering.from_pretrained(model, attn_implementation="sdpa").eval()

    def __call__(self, inputs):
        output = self.model(**inputs)
        return output.start_logits, output.end_logits


def export(model, path):
    """Writes the model as ONNX, with eager attention, because optimize() recognises its pattern."""
    eager = BertForQuestionAnswering.from_pretrained(model, attn_implementation="eager").eval()
    example = torch.ones((2, 16), dtype=torch.long)
    names = ["input_ids", "token_type_ids", "attention_mask"]

    class Positional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = eager

        def forward(self, input_ids, token_type_ids, attention_mask):
            output = self.inner(input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask)
            return output.start_logits, output.end_logits

    axes = {name: {0: "batch", 1: "length"} for name in (*names, "start_logits", "end_logits")}
    torch.onnx.export(Positional(), (example, example, example), str(path), input_names=names,
                      output_names=["start_logits", "end_logits"], dynamic_axes=axes, opset_version=17, dynamo=False)


def optimize(source, target, config):
    """Applies ONNX Runtime's fusions for BERT. Returns the number of fusions of each kind."""
    from onnxruntime.transformers.optimizer import optimize_model

    optimized = optimize_model(str(source), model_type="bert", num_heads=config["num_attention_heads"],
                               hidden_size=config["hidden_size"])
    optimized.save_model_to_file(str(target))
    return {name: count for name, count in optimized.get_fused_operator_statistics().items() if count}


class OnnxRuntime:
    def __init__(self, model, scratch, threads):
        import onnxruntime

        plain, fused = pathlib.Path(scratch) / "plain.onnx", pathlib.Path(scratch) / "fused.onnx"
        export(model, plain)
        self.fused = optimize(plain, fused, json.loads((pathlib.Path(model) / "config.json").read_text()))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(str(fused), options, providers=["CPUExecutionProvider"])

    def __call__(self, inputs):
        outputs = self.session.run(["start_logits", "end_logits"], {name: array.numpy() for name, array in inputs.items()})
        return tuple(map(torch.from_numpy, outputs))


class Evaluation:
    def load(self, engine, model, questions, max_length, stride, threads, scratch):
        torch.set_num_threads(threads)
        self.max_length = max_length
        self.windows = list(load_windows(model, questions, max_length, stride).values())
        self.engine = PyTorch(model) if engine == "pytorch" else OnnxRuntime(model, scratch, threads)
        return {"windows": len(self.windows), "fused": getattr(self.engine, "fused", {})}

    def predict(self, batch, by_length):
        """Predicts all windows, padded to the longest of their batch. Returns seconds and the mean loss."""
        windows = sorted(self.windows, key=lambda window: len(window[0])) if by_length else self.windows
        outputs = []
        begin = time.perf_counter()
        with torch.inference_mode():
            for first in range(0, len(windows), batch):
                inputs, starts, ends = collate(windows[first : first + batch], "longest", self.max_length)
                outputs.append((*self.engine(inputs), inputs["attention_mask"], starts, ends))
        seconds = time.perf_counter() - begin
        losses = torch.cat([span_losses(*output) for output in outputs])
        return {"windows": len(windows), "seconds": seconds, "loss": losses.double().mean().item()}


evaluation = Evaluation()
serve({"load": evaluation.load, "predict": evaluation.predict})
