"""Transformers for images, from classes of timm and transformers."""

import timm
import torch
import transformers
from torch import nn

from sources.recipe import (
    BOTH, FUSED, HEADS, HIDDEN, IMAGE, LAYERS, LENGTH, OPTIMIZED, Source, VOCABULARY, called,
    image, implemented, padding, source, tokens, without_vocabulary)


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
    # One unit for each head; in the second layer, for each head and each of four shifted windows.
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


# A norm of the pooled output is computed but not used.
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


# The decoder's first self-attention (of learned queries) and the norm after it are constants.
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
