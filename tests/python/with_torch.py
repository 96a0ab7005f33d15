"""Starts onnx_in_torch.py in a Python that has torch: this one, ANEMONE_TORCH_PYTHON or the system's."""
import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from onnx import AttributeProto, helper, numpy_helper

SCRIPT = pathlib.Path(__file__).resolve().parent / "onnx_in_torch.py"


@functools.cache
def python():
    """The path of a Python with torch, or None."""
    for path in (os.environ.get("ANEMONE_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if path and not subprocess.run([path, "-c", "import torch"], capture_output=True,
                                       env=environment()).returncode:
            return path
    return None


def environment():
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def attribute(value):
    value = helper.get_attribute_value(value)
    return value.decode() if isinstance(value, bytes) else value


def write(model, path, weights, feeds, loss, **more):
    """Writes PATH.json and PATH.npz: the model's graph, its constants and `feeds`."""
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    arrays.update(feeds)
    nodes = []
    for at, node in enumerate(model.graph.node):
        attributes = {}
        for a in node.attribute:
            if a.type != AttributeProto.TENSOR:
                attributes[a.name] = attribute(a)
                continue
            attributes[a.name] = f"attribute/{at}"
            arrays[f"attribute/{at}"] = numpy_helper.to_array(a.t)
            if node.op_type == "Constant" and node.output[0] in weights:
                arrays[node.output[0]] = arrays[f"attribute/{at}"]
        if node.op_type == "Constant" and node.output[0] in weights:
            continue
        if node.op_type == "Constant" and "value" not in attributes:
            (number,) = attributes.values()
            arrays[f"attribute/{at}"] = np.array(number, np.float32 if "float" in node.attribute[0].name else np.int64)
            attributes = {"value": f"attribute/{at}"}
        nodes.append({"place": at, "op": f"{node.domain}:{node.op_type}" if node.domain else node.op_type,
                      "attributes": attributes, "inputs": list(node.input), "outputs": list(node.output)})
    pathlib.Path(f"{path}.json").write_text(json.dumps(
        {"nodes": nodes, "weights": list(weights), "loss": loss, **more}))
    np.savez(f"{path}.npz", **arrays)


class Process:
    def __init__(self, *words):
        self.process = subprocess.Popen([python(), SCRIPT, *words], env=environment(), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().rstrip("\n")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Layers(Process):
    """Gradients by autograd. of(path) is the result, or a text that says why there is none."""

    def __init__(self):
        super().__init__("layers")

    def of(self, path):
        return self.ask(path) or dict(np.load(f"{path}.result.npz"))


class Steps(Process):
    """A training in PyTorch. run(N) is the time of N steps in seconds."""

    def __init__(self, path):
        super().__init__("steps", path)

    def run(self, count):
        answer = json.loads(self.ask(count))
        self.loss = answer["loss"]
        return answer["seconds"]
