"""Makes models/exported/: small models with random weights as real exporters write them.

    python models/exporters.py [NAME...]        # all of them, or those whose name begins so

The modules are in sources/. Needs torch, transformers, timm, onnx, onnxscript and onnxruntime (exported/requirements.txt has the
versions used); no build and no test does. Classes are made from small configurations, so nothing is
downloaded. Beside the models it writes exported/manifest.json: the inputs that mean something to
the model and how many attentions PyTorch computes, counted while the module runs.
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

# Each registers its sources, in the manifest's order.
import sources.text
import sources.images
import sources.attentions
import sources.layers
import sources.cost_volumes
from sources.recipe import (
    DYNAMO, FUSED, HEADS, HIDDEN, OPTIMIZED, TORCHSCRIPT, VOCABULARY, source, RECIPES)

FOLDER = pathlib.Path(__file__).resolve().parent / "exported"


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
