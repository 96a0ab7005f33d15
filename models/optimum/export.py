"""Writes gpt2.onnx and llama.onnx: small language models with random weights, as optimum exports them with a cache.

    python models/optimum/export.py

Needs torch 1.13 or later, transformers 4.36, optimum 1.16, onnx and onnxruntime; builds and tests do not need them.
"""

import pathlib

import torch
from optimum.exporters.onnx import export
from optimum.exporters.tasks import TasksManager
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

FOLDER = pathlib.Path(__file__).resolve().parent
WIDE = {"vocab_size": 96, "initializer_range": 0.3}

torch.manual_seed(0)
for name, model in (
        ("gpt2", GPT2LMHeadModel(GPT2Config(n_positions=128, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1,
                                            **WIDE))),
        ("llama", LlamaForCausalLM(LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                               num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                                               **WIDE)))):
    form = TasksManager.get_exporter_config_constructor("onnx", model, task="text-generation")
    export(model.eval(), form(model.config, task="text-generation", use_past=True, use_past_in_inputs=True),
           FOLDER / f"{name}.onnx", opset=14)
