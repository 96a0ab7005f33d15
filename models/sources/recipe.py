"""Declares sources of models, and has sizes, inputs and wrappers that they share."""

import dataclasses

import torch
from torch import nn

HIDDEN, HEADS, LAYERS, VOCABULARY, LENGTH, IMAGE = 16, 4, 2, 64, 12, 32
SMALL = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
         "intermediate_size": 2 * HIDDEN, "vocab_size": VOCABULARY}


@dataclasses.dataclass
class Source:
    """A module, and its inputs by name."""
    module: nn.Module
    inputs: dict
    # The number of SDPA units of each attention; None if it is one each. A unit has one mask.
    sdpa: list | None = None


@dataclasses.dataclass
class Recipe:
    make: object  # a function that returns a Source
    exporters: tuple
    opset: int | None
    units: dict  # expected number of units by kind, for kinds that are not counted at run time


RECIPES = {}  # by the source's name


def source(*exporters, opset=None, **units):
    """Registers a function that returns a Source."""
    def register(make):
        RECIPES[make.__name__] = Recipe(make, exporters, opset, units)
        return make
    return register


TORCHSCRIPT, DYNAMO, OPTIMIZED, FUSED = (
    "torchscript", "dynamo", "ort", "ort_transformers")
BOTH = (TORCHSCRIPT, DYNAMO)


class Called(nn.Module):
    """A module with keyword arguments as a function of tensors. Returns the named outputs, or all."""

    def __init__(self, inner, names, outputs=None, **fixed):
        super().__init__()
        self.inner, self.names, self.outputs, self.fixed = inner, names, outputs, fixed

    def forward(self, *values):
        made = self.inner(**dict(zip(self.names, values)), **self.fixed)
        if self.outputs is None:
            return made
        return tuple(made[name] for name in self.outputs)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


def called(inner, inputs, outputs=("last_hidden_state",), sdpa=None, **fixed):
    return Source(Called(inner, list(inputs), outputs, **fixed), inputs, sdpa)


def function(f, **inputs):
    return Source(Function(f), inputs)


def tokens(length=LENGTH):
    return torch.randint(0, VOCABULARY, (1, length))


def padding(length=LENGTH):
    mask = torch.ones(1, length, dtype=torch.long)
    mask[:, -3:] = 0
    return mask


def image(size=IMAGE):
    return torch.randn(1, 3, size, size)


def implemented(config, attention):
    config._attn_implementation = attention
    return config


def without_vocabulary():
    return {key: value for key, value in SMALL.items() if key != "vocab_size"}
