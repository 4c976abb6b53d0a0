"""Shared by the recorders of training: a BERT for question answering, its loss, AdamW, the schedule, and files of tensors (torch)."""

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForQuestionAnswering

MASKED = torch.finfo(torch.float32).min


def make_model(shape, seed, spread):
    """Returns a BERT without dropout. All parameters are drawn from a normal distribution with this standard deviation."""
    config = BertConfig(**shape, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    config.architectures = ["BertForQuestionAnswering"]
    model = BertForQuestionAnswering(config)
    draw = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        mean = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        parameter.data = mean + spread * torch.randn(parameter.shape, generator=draw)
    return model


def question_answering_loss(model, batch):
    """Returns the loss and both logits (B, S). Padding is masked before the softmax, so a packed batch has the same loss."""
    outputs = model(**{name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")})
    padding = batch["attention_mask"] == 0
    losses = [
        torch.nn.functional.cross_entropy(logits.masked_fill(padding, MASKED), batch[labels])
        for logits, labels in ((outputs.start_logits, "start_positions"), (outputs.end_logits, "end_positions"))
    ]
    return sum(losses) / 2, outputs.start_logits, outputs.end_logits


def make_adamw(model):
    """Returns torch's AdamW with weight decay 0.01 except on one-dimensional tensors: biases and normalizations."""
    parameters = list(model.parameters())
    groups = [
        {"params": [value for value in parameters if value.dim() > 1], "weight_decay": 0.01},
        {"params": [value for value in parameters if value.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)


def train_step(model, optimizer, loss_of, batch, rate):
    """Runs one step on loss_of(model, batch) with gradients clipped to norm 1. Returns loss, gradient norm before clipping, and learning
    rate."""
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return {"loss": loss.item(), "gradient_norm": norm.item(), "learning_rate": rate}


def learning_rate(step, steps, warm_up, peak):
    """Returns the learning rate of a step counted from 0: a linear rise to the peak, then a linear decay to 0."""
    return peak * step / warm_up if step < warm_up else peak * (steps - step) / (steps - warm_up)


def parameters(model):
    return {name: parameter.data for name, parameter in model.named_parameters()}


def write_tensors(path, tensors):
    """Writes tensors. Integers become int32, except num_batches_tracked, which keeps PyTorch's type."""
    plain = {}
    for name, value in tensors.items():
        is_index = value.dtype == torch.int64 and not name.endswith("num_batches_tracked")
        plain[name] = value.detach().to(torch.int32 if is_index else value.dtype).contiguous().clone()
    save_file(plain, path)
