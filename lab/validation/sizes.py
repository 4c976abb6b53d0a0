"""Sizes of all runs: on a GPU, and in a dry run with the build for the CPU."""

import dataclasses

BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
LLAMA = {"hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632,
         "vocab_size": 32000}  # 1.1 billion parameters
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
BY_NEED = ["bfloat16", "half", "float"]  # the order of precisions if time does not suffice for all
TINY_LLAMA = {**TINY, "num_key_value_heads": 1, "vocab_size": 512}


@dataclasses.dataclass
class Sizes:
    precisions: tuple = ("float", "bfloat16", "half")
    # {model: shapes of `mylos bench gemm`}, and {model: configuration}.
    models: dict = dataclasses.field(default_factory=lambda: {"BERT-base": "bert-base", "BERT-large": "bert-large"})
    shapes: dict = dataclasses.field(default_factory=lambda: {"BERT-base": {}, "BERT-large": BERT_LARGE})
    small_model: dict = dataclasses.field(default_factory=lambda: {
        "hidden_size": 384, "num_hidden_layers": 3, "num_attention_heads": 12, "intermediate_size": 1536})
    max_length: int = 384
    doc_stride: int = 128
    batch: int = 32
    repeats: int = 5
    questions: int = 2048
    small_questions: int = 256
    small_resnet: str = "resnet50"
    small_pixels: int = 64
    small_tokens: int = 256
    agreement_steps: int = 12
    agreement_batch: int = 8
    gemm_tokens: int = 4096
    peak_shapes: str = "bert-large"
    peak_tokens: int = 16384
    memory_steps: int = 24
    compare_batches: int = 64
    compare_steps: int = 30
    compare_precisions: tuple = ("bfloat16", "half")
    llamas: dict = dataclasses.field(default_factory=lambda: {"Llama": LLAMA})
    llama_tokens: int = 2048
    llama_batch: int = 8
    resnets: dict = dataclasses.field(default_factory=lambda: {"ResNet": "resnet50"})
    resnet_pixels: int = 224
    resnet_batch: int = 256
    traffic: tuple = (1, 16, 32, 256, 1024)  # MB of bench_kernels; 32 MB are what one kernel moves in a step of BERT-base
    # Lengths of a batch of 32 windows with the distribution of SQuAD v1.1, and the heads of both models.
    attention_lengths: tuple = (54, 67, 77, 87, 94, 100, 106, 111, 116, 121, 126, 130, 134, 139, 143, 148, 153, 157, 162, 168, 173, 179, 186, 192,
                                200, 208, 218, 231, 245, 265, 297, 360)
    attention_heads: dict = dataclasses.field(default_factory=lambda: {"BERT-base": 12, "BERT-large": 16})
    attention_head_size: int = 64
    # {name: lengths} of causal attention with the heads of a Llama 3 of 8 billion parameters.
    long_attention: dict = dataclasses.field(default_factory=lambda: {"2k": (2048,) * 8, "8k": (8192,) * 2})
    long_heads: tuple = (32, 8, 128)  # of queries, of keys and values, and their size

    def of_batches(self, size):
        """Returns these sizes with `size` sequences per step, limited by the questions of the bundle."""
        return dataclasses.replace(self, batch=size, compare_batches=max(self.compare_steps, 2048 // size))

    def without(self, precision):
        """Returns these sizes without a precision that the GPU does not have."""
        others = {name: tuple(each for each in getattr(self, name) if each != precision) for name in ("precisions", "compare_precisions")}
        return dataclasses.replace(self, **others)


DRY = Sizes(models={"BERT-tiny": "minilm"}, shapes={"BERT-tiny": TINY}, small_model=TINY, batch=4, repeats=1, questions=40,
            small_questions=24, agreement_steps=4, agreement_batch=4, gemm_tokens=16, peak_shapes="minilm", peak_tokens=32, memory_steps=4,
            small_resnet="resnet18", small_pixels=32, small_tokens=16, llamas={"Llama": TINY_LLAMA}, llama_tokens=16, llama_batch=2,
            resnets={"ResNet": "resnet18"}, resnet_pixels=32, resnet_batch=4, long_attention={"2k": (20,), "8k": (80,)}, long_heads=(4, 1, 128),
            compare_batches=8, compare_steps=6, compare_precisions=("bfloat16",), traffic=(1,), attention_lengths=(9, 30, 17),
            attention_heads={"BERT-tiny": 2}, attention_head_size=32)
