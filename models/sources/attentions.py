"""Attention without a transformer around it."""

import math

import torch
from torch import nn
from torch.nn import functional

from sources.recipe import BOTH, DYNAMO, HEADS, HIDDEN, LENGTH, Source, function, source


def heads(queries=LENGTH, keys=LENGTH, count=HEADS):
    return {"q": torch.randn(1, count, queries, 8), "k": torch.randn(1, count, keys, 8),
            "v": torch.randn(1, count, keys, 8)}


attend = functional.scaled_dot_product_attention


@source(*BOTH)
def sdpa_causal():
    return function(lambda q, k, v: attend(q, k, v, is_causal=True), **heads())


@source(*BOTH)
def sdpa_bool_mask():
    mask = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    return function(lambda q, k, v, mask: attend(q, k, v, attn_mask=mask), **heads(), mask=mask)


@source(*BOTH)
def sdpa_float_mask():
    mask = torch.zeros(LENGTH, 16).masked_fill(torch.arange(16) > 12, -math.inf)
    return function(lambda q, k, v, mask: attend(q, k, v, attn_mask=mask, scale=0.3),
                    **heads(keys=16), mask=mask)


@source(DYNAMO)
def sdpa_grouped():
    inputs = heads()
    inputs["k"], inputs["v"] = inputs["k"][:, :2], inputs["v"][:, :2]
    return function(lambda q, k, v: attend(q, k, v, enable_gqa=True), **inputs)


@source(DYNAMO, opset=23)
def sdpa_opset23():
    mask = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    return function(lambda q, k, v, mask: attend(q, k, v, attn_mask=mask), **heads(), mask=mask)


@source(*BOTH)
def attention_by_einsum():
    def run(q, k, v):
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * 8 ** -0.5
        return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
    return function(run, **{name: x.transpose(1, 2).contiguous() for name, x in heads().items()})


@source(*BOTH)
def attention_masked_fill():
    def run(q, k, v, mask):
        scores = torch.matmul(q / math.sqrt(8), k.transpose(-2, -1))
        scores = scores.masked_fill(mask, torch.finfo(torch.float32).min)
        return torch.matmul(scores.softmax(-1), v)
    return function(run, **heads(), mask=(torch.arange(LENGTH) > 8)[None, None, None])


@source(*BOTH)
def attention_bmm():
    def run(q, k, v):
        return torch.bmm((torch.bmm(q, k.transpose(1, 2)) * 0.35).softmax(2), v)
    return function(run, **{name: x[0] for name, x in heads().items()})


@source(*BOTH)
def attention_of_channels_first():
    def run(q, k, v):  # as in YOLO: heads, channels, positions
        weights = ((q.transpose(-2, -1) @ k) * 0.35).softmax(-1)
        return v @ weights.transpose(-2, -1)
    return function(run, **{name: x.transpose(2, 3).contiguous() for name, x in heads().items()})


class Linformer(nn.Module):
    """Keys and values projected along the sequence; a softmax in float and a causal buffer."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.register_buffer("mask", torch.ones(1, 1, LENGTH, LENGTH).tril() == 0)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(2, 3)).masked_fill(self.mask, -math.inf) / math.sqrt(8)
        weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return (weights @ v).transpose(1, 2).flatten(2)


@source(*BOTH)
def packed_chunks_and_buffer():
    return Source(Linformer(), {"x": torch.randn(1, LENGTH, HIDDEN)})
