"""Makes models/exported/: small models with random weights as real exporters write them.

    python models/exporters.py [NAME...]        # all of them, or those whose name begins so

Needs torch, transformers, timm, onnx, onnxscript and onnxruntime (exported/requirements.txt has the
versions used); no build and no test does. Classes are made from small configurations, so nothing is
downloaded. Beside the models it writes exported/manifest.json: the inputs that mean something to
the model and how many attentions PyTorch computes, counted while the module runs.
"""

import collections
import dataclasses
import json
import logging
import math
import pathlib
import sys
import tempfile
import warnings

import onnx
import onnxruntime
import onnxruntime.transformers.optimizer
import timm
import torch
import transformers
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

FOLDER = pathlib.Path(__file__).resolve().parent / "exported"

HIDDEN, HEADS, LAYERS, VOCABULARY, LENGTH, IMAGE = 16, 4, 2, 64, 12, 32
SMALL = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
         "intermediate_size": 2 * HIDDEN, "vocab_size": VOCABULARY}


@dataclasses.dataclass
class Source:
    """A module, and what it is run on by input name."""
    module: nn.Module
    inputs: dict
    # SDPA units for each attention; None: one each. A unit has one mask for all that it does.
    sdpa: list | None = None


@dataclasses.dataclass
class Recipe:
    make: object  # a function that makes a Source
    exporters: tuple
    opset: int | None
    units: dict  # how many units of some kinds it becomes, beside what Counter counts


RECIPES = {}  # by the source's name


def source(*exporters, opset=None, **units):
    """Registers a function that makes a Source."""
    def register(make):
        RECIPES[make.__name__] = Recipe(make, exporters, opset, units)
        return make
    return register


TORCHSCRIPT, DYNAMO, OPTIMIZED, FUSED = (
    "torchscript", "dynamo", "ort", "ort_transformers")
BOTH = (TORCHSCRIPT, DYNAMO)


class Called(nn.Module):
    """A module called by keywords, as a function of tensors: some outputs, by name or all."""

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


# ---- Encoders of text.

def bert_of(attention):
    config = transformers.BertConfig(**SMALL, max_position_embeddings=16)
    model = transformers.BertModel(implemented(config, attention), add_pooling_layer=False)
    return called(model, {"input_ids": tokens(), "attention_mask": padding()})


@source(*BOTH, OPTIMIZED)
def bert():
    return bert_of("sdpa")


@source(*BOTH, OPTIMIZED, FUSED)
def bert_eager():
    return bert_of("eager")


@source(*BOTH)
def bert_behind_embeddings():
    config = transformers.BertConfig(**SMALL, max_position_embeddings=16)
    model = transformers.BertModel(implemented(config, "sdpa"))
    return called(model.encoder, {"hidden_states": torch.randn(1, LENGTH, HIDDEN)})


@source(*BOTH)
def distilbert():
    config = transformers.DistilBertConfig(dim=HIDDEN, n_heads=HEADS, n_layers=LAYERS,
                                           hidden_dim=2 * HIDDEN, vocab_size=VOCABULARY,
                                           max_position_embeddings=16)
    model = transformers.DistilBertModel(implemented(config, "sdpa"))
    return called(model, {"input_ids": tokens(), "attention_mask": padding()})


# ---- Decoders of text.

class Past(nn.Module):
    """A decoder that takes and gives its keys and values as tensors."""

    def __init__(self, inner, layers):
        super().__init__()
        self.inner, self.layers = inner, layers

    def forward(self, input_ids, attention_mask, *past):
        cache = transformers.DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        made = self.inner(input_ids=input_ids, attention_mask=attention_mask,
                          past_key_values=cache, use_cache=True)
        present = [t for layer in made.past_key_values.layers for t in (layer.keys, layer.values)]
        return (made.last_hidden_state, *present)


def decoding(model, key_heads, past=LENGTH - 1):
    inputs = {"input_ids": tokens(1), "attention_mask": torch.ones(1, past + 1, dtype=torch.long)}
    inputs["attention_mask"][:, :3] = 0
    for layer in range(LAYERS):
        for what in ("key", "value"):
            inputs[f"past_{layer}_{what}"] = torch.randn(1, key_heads, past, HIDDEN // HEADS)
    return Source(Past(model, LAYERS), inputs)


def gpt2_of(attention):
    config = transformers.GPT2Config(n_embd=HIDDEN, n_head=HEADS, n_layer=LAYERS, n_positions=16,
                                     vocab_size=VOCABULARY)
    return transformers.GPT2Model(implemented(config, attention))


@source(*BOTH, OPTIMIZED)
def gpt2():
    return called(gpt2_of("sdpa"), {"input_ids": tokens(), "attention_mask": padding()},
                  use_cache=False)


@source(*BOTH, FUSED)
def gpt2_eager():
    return called(gpt2_of("eager"), {"input_ids": tokens(), "attention_mask": padding()},
                  use_cache=False)


@source(*BOTH)
def gpt2_past():
    return decoding(gpt2_of("sdpa"), HEADS)


def llama_of(attention="sdpa"):
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=16)
    return transformers.LlamaModel(implemented(config, attention))


@source(*BOTH, OPTIMIZED)
def llama():
    return called(llama_of(), {"input_ids": tokens(), "attention_mask": padding()},
                  use_cache=False)


@source(*BOTH)
def llama_eager():
    return called(llama_of("eager"), {"input_ids": tokens(), "attention_mask": padding()},
                  use_cache=False)


@source(*BOTH)
def llama_past():
    return decoding(llama_of(), 2)


@source(DYNAMO, opset=23)
def llama_opset23():
    return called(llama_of(), {"input_ids": tokens()}, use_cache=False)


@source(*BOTH)
def mistral():
    config = transformers.MistralConfig(**SMALL, num_key_value_heads=2, head_dim=4,
                                        sliding_window=4, max_position_embeddings=16)
    return called(transformers.MistralModel(implemented(config, "sdpa")),
                  {"input_ids": tokens(), "attention_mask": padding()}, use_cache=False)


@source(*BOTH)
def qwen3():
    config = transformers.Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=4,
                                      max_position_embeddings=16)
    return called(transformers.Qwen3Model(implemented(config, "eager")),
                  {"input_ids": tokens(), "attention_mask": padding()}, use_cache=False)


# ---- Encoders and decoders.

def t5_config():
    return implemented(transformers.T5Config(
        d_model=HIDDEN, d_kv=4, d_ff=2 * HIDDEN, num_layers=LAYERS, num_heads=HEADS,
        vocab_size=VOCABULARY, relative_attention_num_buckets=8), "eager")


@source(*BOTH, FUSED)
def t5_encoder():
    model = transformers.T5EncoderModel(t5_config())
    return called(model, {"input_ids": tokens(), "attention_mask": padding()},
                  sdpa=[HEADS] * LAYERS)


class T5Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = transformers.T5Model(t5_config()).decoder

    def forward(self, input_ids, encoder_hidden_states, encoder_attention_mask):
        return self.inner(input_ids=input_ids, encoder_hidden_states=encoder_hidden_states,
                          encoder_attention_mask=encoder_attention_mask,
                          use_cache=False).last_hidden_state


@source(*BOTH)
def t5_decoder():
    return Source(T5Decoder(), {"input_ids": tokens(8),
                                "encoder_hidden_states": torch.randn(1, LENGTH, HIDDEN),
                                "encoder_attention_mask": padding()},
                  sdpa=[HEADS, 1] * LAYERS)


def whisper_of(attention):
    config = transformers.WhisperConfig(
        d_model=HIDDEN, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_ffn_dim=2 * HIDDEN,
        decoder_ffn_dim=2 * HIDDEN, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        vocab_size=VOCABULARY, num_mel_bins=16, max_source_positions=16, max_target_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return transformers.WhisperModel(implemented(config, attention))


@source(*BOTH, OPTIMIZED)
def whisper_encoder():
    return called(whisper_of("sdpa").encoder, {"input_features": torch.randn(1, 16, 32)})


@source(*BOTH)
def whisper_decoder():
    return called(whisper_of("sdpa").decoder,
                  {"input_ids": tokens(), "attention_mask": padding(),
                   "encoder_hidden_states": torch.randn(1, 16, HIDDEN)}, use_cache=False)


@source(*BOTH, FUSED)
def bart():
    config = transformers.BartConfig(
        d_model=HIDDEN, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=2 * HIDDEN,
        decoder_ffn_dim=2 * HIDDEN, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        vocab_size=VOCABULARY, max_position_embeddings=16, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1)
    return called(transformers.BartModel(implemented(config, "eager")),
                  {"input_ids": tokens(), "attention_mask": padding(),
                   "decoder_input_ids": tokens(8)}, use_cache=False)


# ---- Images.

@source(*BOTH, OPTIMIZED)
def vit_timm():
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=IMAGE, patch_size=8, embed_dim=HIDDEN, depth=LAYERS, num_heads=HEADS,
        mlp_ratio=2, num_classes=10)
    return Source(model, {"x": image()})


@source(*BOTH)
def vit_timm_unfused():
    made = vit_timm()
    for block in made.module.blocks:
        block.attn.fused_attn = False
    return made


def without_vocabulary():
    return {key: value for key, value in SMALL.items() if key != "vocab_size"}


@source(*BOTH, FUSED)
def vit():
    config = transformers.ViTConfig(**without_vocabulary(), image_size=IMAGE, patch_size=8)
    return called(transformers.ViTModel(implemented(config, "sdpa"), add_pooling_layer=False),
                  {"pixel_values": image()})


@source(*BOTH)
def deit():
    config = transformers.DeiTConfig(**without_vocabulary(), image_size=IMAGE, patch_size=8)
    return called(transformers.DeiTModel(implemented(config, "eager"), add_pooling_layer=False),
                  {"pixel_values": image()})


@source(*BOTH)
def swin():
    model = timm.models.swin_transformer.SwinTransformer(
        img_size=IMAGE, patch_size=4, window_size=4, embed_dim=16, depths=(2,), num_heads=(2,),
        mlp_ratio=2, num_classes=10)
    # By head; then also by each of four windows, which are shifted.
    return Source(model, {"x": image()}, sdpa=[2, 8])


@source(*BOTH)
def swin_fused():
    made = swin()
    for block in made.module.layers[0].blocks:
        block.attn.fused_attn = True
    return made


@source(*BOTH)
def mobilevit():
    config = transformers.MobileViTConfig(
        image_size=IMAGE, patch_size=2, hidden_sizes=[8, 8, 16],
        neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 16], num_attention_heads=2, mlp_ratio=1.0,
        expand_ratio=2.0)
    return called(transformers.MobileViTModel(config, expand_output=False),
                  {"pixel_values": image(64)})


@source(*BOTH)
def segformer():
    config = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2])
    return called(transformers.SegformerModel(config), {"pixel_values": image()})


def clip_of(part, attention):
    kind = getattr(transformers, f"CLIP{part}Config")
    more = ({"vocab_size": VOCABULARY, "max_position_embeddings": LENGTH, "eos_token_id": 2}
            if part == "Text" else {"image_size": IMAGE, "patch_size": 8})
    config = kind(**without_vocabulary(), **more)
    return getattr(transformers, f"CLIP{part}Model")(implemented(config, attention))


@source(*BOTH)
def clip_text():
    return called(clip_of("Text", "sdpa"), {"input_ids": tokens(), "attention_mask": padding()})


# A norm of the pooled output is computed in vain.
@source(*BOTH, FUSED, LayerNormalization=5)
def clip_vision():
    return called(clip_of("Vision", "eager"), {"pixel_values": image()})


class Detr(nn.Module):
    """DETR's head: features of an image through nn.Transformer to learned queries."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, HIDDEN, 8, stride=8), nn.ReLU())
        self.transformer = nn.Transformer(HIDDEN, HEADS, 1, 1, 2 * HIDDEN, dropout=0,
                                          batch_first=True)
        self.queries = nn.Parameter(torch.randn(6, HIDDEN))
        self.positions = nn.Parameter(torch.randn(16, HIDDEN))
        self.boxes = nn.Linear(HIDDEN, 4)

    def forward(self, x):
        features = self.backbone(x).flatten(2).transpose(1, 2) + self.positions
        return self.boxes(self.transformer(features, self.queries.unsqueeze(0))).sigmoid()


# The decoder's attention among learned queries, and the norm behind it, are constants.
@source(*BOTH, LayerNormalization=6)
def detr():
    return Source(Detr(), {"x": image()}, sdpa=[1, 0, 1])


class Multihead(nn.Module):
    def __init__(self, need_weights):
        super().__init__()
        self.inner = nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x, mask):
        return self.inner(x, x, x, key_padding_mask=mask, need_weights=self.need_weights)[0]


def multihead_of(need_weights):
    return Source(Multihead(need_weights), {"x": torch.randn(1, LENGTH, HIDDEN),
                                            "mask": torch.arange(LENGTH)[None] > 8})


@source(*BOTH)
def multihead():
    return multihead_of(False)


@source(*BOTH)
def multihead_baddbmm():
    return multihead_of(True)


# ---- Attention in functions of its own.

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


# ---- Normalizations, activations and rearrangements.

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


# ---- Cost volumes.

class Stereo(nn.Module):
    """Disparity by soft argmin over absolute differences of features."""

    def __init__(self, channels, disparities=8):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(),
                                      nn.Conv2d(8, channels, 3, padding=1))
        self.disparities = disparities

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        planes = []
        for d in range(self.disparities):
            shifted = functional.pad(b, (d, 0))[..., :b.shape[-1]]
            planes.append((a - shifted).abs().sum(1, keepdim=True))
        weights = torch.softmax(-torch.cat(planes, 1), 1)
        numbers = torch.arange(self.disparities, dtype=torch.float32).reshape(1, -1, 1, 1)
        return (weights * numbers).sum(1, keepdim=True)


def stereo_of(channels):
    return Source(Stereo(channels), {"left": image(), "right": image()})


@source(*BOTH, CostVolume=1)
def stereo():
    return stereo_of(1)


@source(*BOTH, CostVolume=4)
def stereo_of_four_channels():
    return stereo_of(4)


class Flow(nn.Module):
    """Dot products of features over a window of displacements, as PWC-Net's correlation."""

    def __init__(self, reach=2):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.decoder = nn.Conv2d((2 * reach + 1) ** 2, 2, 3, padding=1)
        self.reach = reach

    def forward(self, first, second):
        a, b = self.features(first), self.features(second)
        r, (h, w) = self.reach, a.shape[-2:]
        padded = functional.pad(b, (r, r, r, r))
        planes = [(a * padded[..., y:y + h, x:x + w]).mean(1, keepdim=True)
                  for y in range(2 * r + 1) for x in range(2 * r + 1)]
        return self.decoder(functional.leaky_relu(torch.cat(planes, 1), 0.1))


@source(*BOTH)
def optical_flow():
    return Source(Flow(), {"first": image(), "second": image()})


class Tracker(nn.Module):
    """Where a template is in an image: the features of one are the kernel over the other's."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, search, template):
        return functional.conv2d(self.features(search), self.features(template))


@source(*BOTH, CrossCorrelation=1)
def tracker():
    return Source(Tracker(), {"search": image(), "template": image(6)})


# ---- Exporting.

# The unit of each normalization that is a module, by what the class name ends in.
NORMS = {"LayerNorm": "LayerNormalization", "RMSNorm": "L2Normalization",
         "T5LayerNorm": "L2Normalization"}


class Counter(TorchDispatchMode):
    """Counts attentions: softmaxes over scores of rank 3 and more, and fused kernels."""

    def __init__(self):
        super().__init__()
        self.attentions = 0

    def __torch_dispatch__(self, call, types, args=(), kwargs=None):
        name = call._schema.name
        if name in ("aten::_softmax", "aten::_safe_softmax"):
            self.attentions += args[0].dim() >= 3 and args[1] in (-1, args[0].dim() - 1)
        self.attentions += name == "aten::_scaled_dot_product_flash_attention_for_cpu"
        return call(*args, **(kwargs or {}))


def counted(made):
    """Attentions, and units of normalizations by kind, that the module computes."""
    norms = collections.Counter()
    for module in made.module.modules():
        kind = next((unit for end, unit in reversed(NORMS.items())
                     if type(module).__name__.endswith(end)), None)
        if kind:
            module.register_forward_hook(lambda *_, kind=kind: norms.update([kind]))
    with torch.no_grad(), Counter() as counter:
        made.module(*made.inputs.values())
    return counter.attentions, dict(norms)


def randomize(module):
    """Weights that make attentions differ from averages, as trained ones do."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=1.5 / math.sqrt(parameter[0].numel()))
        else:
            parameter.data += 0.2 * torch.randn_like(parameter)


def export(made, exporter, opset, path):
    options = {"input_names": list(made.inputs), "dynamo": exporter == DYNAMO}
    if opset:
        options["opset_version"] = opset
    if exporter == DYNAMO:
        options.update(external_data=False, verbose=False)
    with torch.no_grad():
        torch.onnx.export(made.module, tuple(made.inputs.values()), str(path), **options)


def optimize(path):
    """What ONNX Runtime writes after its own fusions for the CPU, com.microsoft operators in it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


# The optimizer's model type by source.
FUSED_AS = {"bert_eager": "bert", "gpt2_eager": "gpt2", "vit": "vit", "clip_vision": "clip",
            "bart": "bart", "t5_encoder": "t5"}


def fuse(path, kind):
    """What `python -m onnxruntime.transformers.optimizer` makes of it."""
    onnxruntime.transformers.optimizer.optimize_model(
        str(path), model_type=kind, num_heads=HEADS, hidden_size=HIDDEN, opt_level=0
    ).save_model_to_file(str(path))


def without_notes(path):
    """Takes out stack traces and the like, which are most of a small model's bytes."""
    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        for part in (graph, *graph.node, *getattr(graph, "input", ()), *getattr(graph, "output", ()),
                     *graph.value_info, *getattr(graph, "initializer", ())):
            if isinstance(part, (str, bytes)):
                continue
            if "metadata_props" in part.DESCRIPTOR.fields_by_name:
                del part.metadata_props[:]
            part.doc_string = ""
        graphs += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    del model.metadata_props[:]
    onnx.save(model, path)
    return model


def input_of(tensor):
    """How the test fills an input: with random numbers, or as a mask with these bits."""
    if tensor.dtype == torch.long and tensor.max() > 1:
        return {"below": VOCABULARY}
    if tensor.is_floating_point() and torch.isfinite(tensor).all():
        return {"normal": True}
    kept = tensor == tensor.max()
    rows = kept.reshape(-1, kept.shape[-1]).tolist()
    if all(row == rows[0] for row in rows):
        rows = rows[:1]
    return {"bits": "".join("01"[bit] for row in rows for bit in row),
            "of": ["-inf", 0] if tensor.is_floating_point() else [0, 1]}


def is_contrib(model):
    """Whether ONNX Runtime's own operators are in it, one of which it has in ONNX's domain."""
    return any(node.domain or node.op_type == "SimplifiedLayerNormalization"
               for node in model.graph.node)


def make(name):
    recipe, entries = RECIPES[name], []
    for exporter in recipe.exporters:
        torch.manual_seed(1)
        made = recipe.make()
        made.module.eval()
        randomize(made.module)
        path = FOLDER / f"{name}_{exporter}.onnx"
        export(made, DYNAMO if exporter == DYNAMO else TORCHSCRIPT, recipe.opset, path)
        if exporter == OPTIMIZED:
            optimize(path)
        if exporter == FUSED:
            fuse(path, FUSED_AS[name])
        model = without_notes(path)
        attentions, norms = counted(made)
        units = {"SDPA": sum(made.sdpa or [1] * attentions), **norms, **recipe.units}
        entries.append({"name": path.stem, "source": name, "exporter": exporter,
                        "attentions": attentions, "contrib": is_contrib(model), "units": units,
                        "inputs": {i.name: input_of(made.inputs[i.name])
                                   for i in model.graph.input}})
        print(f"{path.name}: {path.stat().st_size} bytes, {attentions} attentions",
              file=sys.stderr)
    return entries


def main(prefixes):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.backends.mha.set_fastpath_enabled(False)  # what it calls cannot be exported
    manifest = FOLDER / "manifest.json"
    known = json.loads(manifest.read_text())["models"] if manifest.exists() else []
    entries = {one["name"]: one for one in known if one["source"] in RECIPES}
    for name in RECIPES:
        if name.startswith(tuple(prefixes) or ""):
            entries |= {one["name"]: one for one in make(name)}
    order = list(RECIPES)
    rows = sorted(entries.values(), key=lambda one: order.index(one["source"]))
    manifest.write_text('{"what": "Written by models/exporters.py: small models as exporters write '
                        'them.",\n "models": [\n  '
                        + ",\n  ".join(map(json.dumps, rows)) + "\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
