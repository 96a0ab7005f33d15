"""Writes models/exported/: small models with random weights, written by real exporters.

    python models/exporters.py [NAME...]        # all models, or those whose names begin with NAME

The modules are in sources/. It needs torch, transformers, timm, onnx, onnxscript and onnxruntime
(exported/requirements.txt has the versions used); builds and tests do not need them. The modules are
built from small configurations, so nothing is downloaded. It also writes exported/manifest.json, with
valid inputs for each model and the number of attentions that PyTorch computes, counted while the
module runs.
"""

import collections
import json
import logging
import math
import pathlib
import sys
import warnings

import onnx
import onnxruntime
import onnxruntime.transformers.optimizer
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

# Each import registers sources, in the manifest's order.
import sources.text
import sources.images
import sources.attentions
import sources.layers
import sources.cost_volumes
from sources.recipe import (
    DYNAMO, FUSED, HEADS, HIDDEN, OPTIMIZED, TORCHSCRIPT, VOCABULARY, source, RECIPES)

FOLDER = pathlib.Path(__file__).resolve().parent / "exported"


# The unit of each normalization module, by the end of the class name.
NORMS = {"LayerNorm": "LayerNormalization", "RMSNorm": "L2Normalization",
         "T5LayerNorm": "L2Normalization"}


class Counter(TorchDispatchMode):
    """Counts attentions: softmaxes over scores of rank 3 or more, and fused kernels."""

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
    """The number of attentions that the module computes, and of normalization units by kind."""
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
    """Sets random weights with which attentions differ from averages, as with trained weights."""
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
    """Replaces the model by ONNX Runtime's optimized model for the CPU, with com.microsoft operators."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


# The model type for ONNX Runtime's transformers optimizer, by source.
FUSED_AS = {"bert_eager": "bert", "gpt2_eager": "gpt2", "vit": "vit", "clip_vision": "clip",
            "bart": "bart", "t5_encoder": "t5"}


def fuse(path, kind):
    """Replaces the model by the result of `python -m onnxruntime.transformers.optimizer`."""
    onnxruntime.transformers.optimizer.optimize_model(
        str(path), model_type=kind, num_heads=HEADS, hidden_size=HIDDEN, opt_level=0
    ).save_model_to_file(str(path))


def without_notes(path):
    """Removes stack traces and other metadata, which are most of a small model's bytes."""
    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        for part in (graph, *graph.node, *getattr(graph, "input", ()),
                     *getattr(graph, "output", ()), *graph.value_info, *getattr(graph, "initializer", ())):
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
    """How the test fills an input: with random numbers, or with a mask of these bits."""
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
    """True if the model has ONNX Runtime's operators. One of them is in ONNX's domain."""
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
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path's operators cannot be exported
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
