"""Transformers for text and speech, from classes of transformers."""

import torch
import transformers
from torch import nn

from sources.recipe import (
    BOTH, DYNAMO, FUSED, HEADS, HIDDEN, LAYERS, LENGTH, OPTIMIZED, SMALL, Source, VOCABULARY,
    called, implemented, padding, source, tokens)


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


class Past(nn.Module):
    """A decoder with keys and values as input and output tensors."""

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
