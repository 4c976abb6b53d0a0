#!/usr/bin/env python3
"""Records which modules PEFT adapts or trains whole, with ranks and scales -> tests/golden/adapter_configs.json.

    lab/record/adapter_configs.py

PyPI: peft 0.21.2, torch, transformers.
"""

import json

import peft
import torch
import transformers
from peft.tuners.lora.layer import LoraLayer
from peft.utils.other import ModulesToSaveWrapper

from common import GOLDEN

SMALL = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 11}
MODELS = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, tie_word_embeddings=False)),
    "bert": lambda: transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL)),
    "distilbert": lambda: transformers.DistilBertForSequenceClassification(
        transformers.DistilBertConfig(dim=8, hidden_dim=12, n_layers=2, n_heads=2, vocab_size=11)
    ),
}
# The model, and what of LoraConfig is not its default.
CASES = [
    ("llama", {"target_modules": ["q_proj", "v_proj"], "r": 3, "lora_alpha": 7}),
    ("llama", {"target_modules": "all-linear", "r": 4, "lora_alpha": 6, "use_rslora": True}),
    ("llama", {"target_modules": r".*layers\.1\..*(up|down)_proj"}),
    ("llama", {"target_modules": ["model.layers.0.mlp.gate_proj", "o_proj"], "layers_to_transform": [1]}),
    ("llama", {"target_modules": ["k_proj"], "layers_to_transform": 0, "layers_pattern": "layers"}),
    ("llama", {"target_modules": ["k_proj", "q_proj"], "layers_to_transform": [0, 1], "layers_pattern": ["h", "layers"]}),
    ("llama", {"target_modules": "all-linear", "exclude_modules": ["down_proj", "model.layers.0.self_attn.k_proj"]}),
    ("llama", {"target_modules": "all-linear", "exclude_modules": r".*\.mlp\..*", "lora_dropout": 0.25}),
    ("llama", {"target_modules": ["q_proj", "lm_head"], "rank_pattern": {"lm_head": 2}, "alpha_pattern": {"q_proj": 2.5}}),
    # A rank without an alpha keeps lora_alpha, and the first key that matches counts.
    ("llama", {"target_modules": ["q_proj", "k_proj", "v_proj"], "rank_pattern": {"q_proj": 2, r"layers\.0\..*[qk]_proj": 5}}),
    ("llama", {"target_modules": ["q_proj", "up_proj"], "r": 5, "use_rslora": True, "alpha_pattern": {"^model.layers.1.mlp.up_proj": 9}}),
    ("llama", {"target_modules": ".*_proj", "rank_pattern": {"[a-z]_proj": 2}, "alpha_pattern": {"self_attn.k_proj": 3, "k_.*": 4}}),
    ("llama", {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens", "lm_head"]}),
    ("llama", {"target_modules": "all-linear", "modules_to_save": ["mlp"]}),
    ("llama", {"target_modules": ["proj"]}),
    ("llama", {"target_modules": "proj"}),
    ("bert", {"target_modules": ["query", "value"], "r": 5, "lora_alpha": 10, "modules_to_save": ["classifier"], "task_type": "SEQ_CLS"}),
    ("bert", {"target_modules": "all-linear", "task_type": "SEQ_CLS", "rank_pattern": {"pooler.dense": 3, "output.dense": 6}}),
    ("bert", {"target_modules": ["dense"], "exclude_modules": ["pooler.dense"], "modules_to_save": ["classifier"]}),
    ("distilbert", {"target_modules": ["q_lin", "out_lin"], "task_type": "SEQ_CLS"}),
]


def adapted(name, settings):
    config = peft.LoraConfig(base_model_name_or_path="base", **settings)
    with torch.device("meta"):
        model = MODELS[name]()
    modules = [key for key, _ in model.named_modules()]
    try:
        model = peft.get_peft_model(model, config)
    except ValueError:
        return {"model": name, "config": settings, "targets": []}
    config.inference_mode = True
    written = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    default = peft.LoraConfig(inference_mode=True).to_dict()
    linear = linear_modules(name)
    targets, trained = [], []
    for key, module in model.base_model.model.named_modules():
        if isinstance(module, LoraLayer):
            targets.append([linear.index(key), module.r["default"], module.scaling["default"]])
        if isinstance(module, ModulesToSaveWrapper):
            trained.append(key)
    assert all(key in modules for key in trained)
    written = {key: value for key, value in written.items() if value != default[key]}
    if isinstance(settings["target_modules"], str):  # PEFT replaces "all-linear" by the modules that it finds
        written["target_modules"] = settings["target_modules"]
    return {"model": name, "config": written, "targets": sorted(targets), "trained": sorted(trained)}


def linear_modules(name):
    with torch.device("meta"):
        return [key for key, module in MODELS[name]().named_modules() if isinstance(module, torch.nn.Linear)]


def recorded_model(name):
    with torch.device("meta"):
        return {"modules": [key for key, _ in MODELS[name]().named_modules() if key], "linear": linear_modules(name)}


def line(value):
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    default = dict(sorted(peft.LoraConfig(inference_mode=True).to_dict().items()))
    models = {name: recorded_model(name) for name in MODELS}
    cases = ",\n".join(line(adapted(*case)) for case in CASES)
    text = f'{{"default":{line(default)},\n"models":{line(models)},\n"cases":[\n{cases}]}}\n'
    (GOLDEN / "adapter_configs.json").write_text(text, encoding="ascii")
