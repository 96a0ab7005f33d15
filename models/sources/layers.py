"""Normalizations, activations and rearrangements."""

import timm
import torch
import transformers
from torch import nn
from torch.nn import functional

from sources.recipe import BOTH, DYNAMO, HIDDEN, LENGTH, Source, TORCHSCRIPT, function, source


@source(*BOTH, InstanceNormalization=1)
def group_norm():
    return Source(nn.GroupNorm(4, 16), {"x": torch.randn(1, 16, 8, 8)})


@source(*BOTH, InstanceNormalization=1)
def instance_norm():
    return Source(nn.InstanceNorm2d(16, affine=True), {"x": torch.randn(1, 16, 8, 8)})


@source(TORCHSCRIPT, opset=16)
def layer_norm_written_out():
    return Source(nn.LayerNorm(HIDDEN), {"x": torch.randn(1, LENGTH, HIDDEN)})


@source(*BOTH, LayerNormalization=1)
def layer_norm_of_channels():
    return Source(timm.layers.LayerNorm2d(16), {"x": torch.randn(1, 16, 8, 8)})


@source(*BOTH)
def rms_norm():
    norm = transformers.models.llama.modeling_llama.LlamaRMSNorm(HIDDEN)
    return Source(norm, {"x": torch.randn(1, LENGTH, HIDDEN)})


@source(DYNAMO, opset=23)
def rms_norm_of_torch():
    return Source(nn.RMSNorm(HIDDEN), {"x": torch.randn(1, LENGTH, HIDDEN)})


def activation(f):
    return function(f, x=3 * torch.randn(1, LENGTH, HIDDEN))


@source(*BOTH, opset=18, Neuron=1)
def gelu_erf():
    return activation(functional.gelu)


@source(*BOTH, opset=18, Neuron=1)
def gelu_tanh():
    return activation(lambda x: functional.gelu(x, approximate="tanh"))


@source(*BOTH, Neuron=1)
def gelu_new():
    return activation(transformers.activations.NewGELUActivation())


@source(*BOTH)
def gelu_quick():
    return activation(transformers.activations.QuickGELUActivation())


@source(*BOTH, Neuron=1)
def silu():
    return activation(functional.silu)


@source(*BOTH)
def mish():
    return activation(functional.mish)


@source(*BOTH)
def hard_swish():
    return activation(functional.hardswish)


@source(*BOTH, L2Normalization=1)
def l2_norm():
    return function(lambda x: functional.normalize(x, dim=-1), x=torch.randn(1, LENGTH, HIDDEN))


@source(*BOTH, L2Normalization=1)
def l2_norm_of_channels():
    return function(lambda x: functional.normalize(x, dim=1), x=torch.randn(1, 16, 8, 8))


@source(*BOTH, PixelShuffle=1)
def pixel_shuffle():
    return function(lambda x: functional.pixel_shuffle(x, 2), x=torch.randn(1, 16, 8, 8))


@source(*BOTH, PixelUnshuffle=1)
def pixel_unshuffle():
    return function(lambda x: functional.pixel_unshuffle(x, 2), x=torch.randn(1, 16, 8, 8))


@source(*BOTH, SpaceToChannel=1)
def space_to_depth():
    def run(x):
        b, c, h, w = x.shape
        x = x.reshape(b, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 1, 2, 4)
        return x.reshape(b, 4 * c, h // 2, w // 2)
    return function(run, x=torch.randn(1, 16, 8, 8))


@source(*BOTH, ChannelToSpace=1)
def depth_to_space():
    def run(x):
        b, c, h, w = x.shape
        x = x.reshape(b, 2, 2, c // 4, h, w).permute(0, 3, 4, 1, 5, 2)
        return x.reshape(b, c // 4, 2 * h, 2 * w)
    return function(run, x=torch.randn(1, 16, 8, 8))


@source(*BOTH, Transpose=1)
def channel_shuffle():
    return function(lambda x: x.reshape(1, 4, 4, 8, 8).transpose(1, 2).reshape(1, 16, 8, 8),
                    x=torch.randn(1, 16, 8, 8))


@source(*BOTH)
def focus():
    def run(x):  # YOLOv5's first layer
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2],
                          x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
    return function(run, x=torch.randn(1, 4, 8, 8))


@source(*BOTH, CrossCorrelation=1)
def cross_correlation():
    return function(functional.conv2d, x=torch.randn(1, 1, 16, 16), kernel=torch.randn(1, 1, 5, 5))
