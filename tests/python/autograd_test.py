"""Gradients on the engine against PyTorch's autograd in float64, for the layers of the exported models, for
whole exported models and for the small models of training_models.py.

    autograd_test.py [NAME...]

A layer is a node with its real operands; each form and size is compared once. Says why it is skipped if no
Python has torch (with_torch.py).
"""
import collections
import pathlib
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import training_models as models  # noqa: E402
import with_torch  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

EXPORTED = pathlib.Path(__file__).resolve().parents[2] / "models" / "exported"
SKIPPED = 77  # the exit code that CTest takes for a skipped test
LEAST = 0.9999
# Of whole models on the engine: a deep one adds up the roundings of its activations to fp16 (stereo has
# 0.9988; the same step in fp32 meets LEAST).
LEAST_OF_MODELS = 0.998
SCALE = 8  # of the loss; at 64, values of the tracker pass 65504
TYPES = {TensorProto.FLOAT: np.float32, TensorProto.INT64: np.int64, TensorProto.INT32: np.int32,
         TensorProto.BOOL: np.bool_}
FAMILIES = {
    "linear": ("MatMul", "Gemm", "Einsum"), "convolution": ("Conv",), "embedding": ("Gather",),
    "norm": ("LayerNormalization", "InstanceNormalization", "RMSNormalization", "GroupNormalization",
             "SimplifiedLayerNormalization"),
    "softmax": ("Softmax", "LogSoftmax"), "pool": ("MaxPool", "AveragePool", "GlobalAveragePool"),
    "activation": ("Relu", "Tanh", "Sigmoid", "Gelu", "Erf", "LeakyRelu", "HardSwish", "Mish", "Softplus", "Clip"),
    "arithmetic": ("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Reciprocal", "ReduceMean", "ReduceSum", "ReduceL2"),
}
# Layers that the exported models do not have: (input, output, nodes, weights), by name.
CASES = {
    "conv of groups": ([2, 4, 9, 9], [2, 6, 9, 9], "y = Conv<group = 2, pads = [1,1,1,1]>(x, w, b)",
                       {"w": (6, 2, 3, 3), "b": (6,)}),
    "conv by channel": ([2, 4, 9, 9], [2, 4, 9, 9], "y = Conv<group = 4, pads = [1,1,1,1]>(x, w, b)",
                        {"w": (4, 1, 3, 3), "b": (4,)}),
    "conv of strides": ([2, 4, 9, 9], [2, 6, 5, 5], "y = Conv<strides = [2,2], pads = [1,1,1,1]>(x, w, b)",
                        {"w": (6, 4, 3, 3), "b": (6,)}),
    "conv of dilations": ([2, 4, 9, 9], [2, 6, 9, 9], "y = Conv<dilations = [2,2], pads = [2,2,2,2]>(x, w)",
                          {"w": (6, 4, 3, 3)}),
    "conv of uneven pads": ([2, 4, 8, 8], [2, 6, 8, 8], "y = Conv<pads = [0,1,1,0]>(x, w)", {"w": (6, 4, 2, 2)}),
    "conv of one axis": ([2, 4, 16], [2, 6, 16], "y = Conv<pads = [2,2]>(x, w, b)", {"w": (6, 4, 5), "b": (6,)}),
    "conv of one element": ([2, 8, 6, 6], [2, 12, 6, 6], "y = Conv(x, w, b)", {"w": (12, 8, 1, 1), "b": (12,)}),
    "frozen conv": ([2, 4, 9, 9], [2, 6, 5, 5],
                    "h = Conv<pads = [1,1,1,1]>(x, w) c = Identity(h) y = Conv<strides = [2,2], pads = [1,1,1,1]>(c, k)",
                    {"w": (4, 4, 3, 3), "k": (6, 4, 3, 3)}),
    "group norm": ([2, 8, 6, 6], [2, 8, 6, 6], "y = GroupNormalization<num_groups = 4>(x, w, b)",
                   {"w": (8,), "b": (8,)}),
    "batch norm": ([2, 8, 6, 6], [2, 8, 6, 6], "y = BatchNormalization(x, w, b, m, v)",
                   {"w": (8,), "b": (8,), "m": (8,), "v": (8,)}),
    "max pool": ([2, 4, 8, 8], [2, 6, 4, 4],
                 "h = Conv(x, w) y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(h)", {"w": (6, 4, 1, 1)}),
    "average pool": ([2, 4, 8, 8], [2, 6, 4, 4],
                     "h = Conv(x, w) y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(h)", {"w": (6, 4, 1, 1)}),
    "transposed conv": ([2, 4, 6, 6], [2, 4, 12, 12],
                        "h = Mul(x, s) y = ConvTranspose<strides = [2,2], kernel_shape = [2,2]>(h, k)",
                        {"s": (4, 1, 1), "k": (4, 4, 2, 2)}),
}
FROZEN = {"frozen conv": "k", "transposed conv": "k", "batch norm": "m v"}
FAMILY = {op: family for family, ops in FAMILIES.items() for op in ops}


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norms) if norms else float(np.all(a == b))


def arrays_of(model):
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            arrays[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return arrays


def step_of(model, loss, frozen=None):
    """The step that computes gradients, and the names of their outputs by weight."""
    only = [t.name for t in model.graph.initializer if t.name not in frozen.split()] if frozen else ""
    step = ane.Trainer(model, loss, optimizer="none", loss_scale=SCALE, train_only=only).step_model()
    outputs = [output.name for output in onnx.load_model_from_string(step).graph.output]
    return step, {name.split("/", 1)[1].rsplit("/", 1)[0]: name for name in outputs
                  if name.startswith("training/") and name.endswith("/gradient")}


def gradients(model, feeds, step, names):
    """On the engine and on ONNX Runtime, by weight."""
    arrays = arrays_of(model)
    feeds = {**feeds, **{name: arrays[name] for name in names}}
    read = {port.name for port in onnx.load_model_from_string(step).graph.input}
    feeds = {name: array for name, array in feeds.items() if name in read}
    on_engine = ane.Session(step).run(feeds)
    session = ort.InferenceSession(step, providers=["CPUExecutionProvider"])
    in_fp32 = dict(zip(names, session.run(list(names.values()), feeds)))
    return {name: on_engine[output] for name, output in names.items()}, in_fp32


def layer_model(node, arrays, factors):
    """The sum of the node's first output times `factors`; its operands are initializers."""
    names = [f"i{i}" if f"{i}" in arrays else "" for i in range(len(node.input))]
    outputs = ["y"] + [f"y{i}" for i in range(1, len(node.output))]
    layer = helper.make_node(node.op_type, names, outputs, domain=node.domain)
    layer.attribute.extend(node.attribute)
    rank = factors.ndim
    nodes = [layer, helper.make_node("Mul", ["y", "factors"], ["terms"]),
             helper.make_node("ReduceSum", ["terms", "axes"], ["sum"], keepdims=0),
             helper.make_node("Reshape", ["sum", "one"], ["loss"])]
    values = {**{f"i{i}": array for i, array in arrays.items()},
              "axes": np.arange(rank), "one": np.array([1])}
    graph = helper.make_graph(
        nodes, "layer", [helper.make_tensor_value_info("factors", TensorProto.FLOAT, factors.shape)],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in values.items()])
    return graph


def as_fp32(array):
    return array.astype(np.float32) if array.dtype == np.float64 else array


class Comparison:
    def __init__(self):
        self.counts = collections.defaultdict(list)  # by family: cosines
        self.failed, self.left_out, self.seen = [], collections.Counter(), set()
        self.torch = with_torch.Layers()

    def add(self, family, what, got, want):
        value = cosine(got, want)
        self.counts[family].append(value)
        if not value >= (LEAST_OF_MODELS if family == "exported, engine" else LEAST):
            self.failed.append(f"{what}: cosine {value:.6f}")

    def layers(self, name, model, result):
        for place, node in enumerate(model.graph.node):
            prefix = f"{place}/in/"
            arrays = {key[len(prefix):]: as_fp32(array) for key, array in result.items()
                      if key.startswith(prefix)}
            wanted = {key.rsplit("/", 1)[1]: array for key, array in result.items()
                      if key.startswith(f"{place}/gradient/")}
            key = (node.op_type, str(list(node.attribute)), str({i: a.shape for i, a in arrays.items()}))
            if not wanted or key in self.seen:
                continue
            self.seen.add(key)
            factors = result[f"{place}/factors"].astype(np.float32)
            graph = layer_model(node, arrays, factors)
            layer = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
            try:
                on_engine, _ = gradients(layer, {"factors": factors}, *step_of(layer, "output:loss"))
            except ValueError as error:
                self.left_out[str(error)[:60]] += 1
                continue
            for weight, gradient in on_engine.items():
                want = wanted.get(weight[1:])
                if want is not None and np.any(want):
                    self.add(FAMILY[node.op_type], f"{name} node {place} ({node.op_type}) by input {weight[1:]}",
                             gradient, want)

    def whole(self, family, name, model, path, feeds, loss, frozen=None):
        step, trained = step_of(model, loss, frozen)
        form, output, target = loss.split(":")
        with_torch.write(model, path, list(trained), feeds, (form, output, target),
                         layers=list(FAMILY) if family == "exported" else [])
        result = self.torch.of(path)
        if isinstance(result, str):
            self.left_out[result] += 1
            return None
        on_engine, in_fp32 = gradients(model, feeds, step, trained)
        names = [name for name in on_engine if f"gradient/{name}" in result]
        together = [np.concatenate([source[key].ravel() for key in keys]) for source, keys in
                    ((on_engine, names), (in_fp32, names), (result, [f"gradient/{n}" for n in names]))]
        self.add(f"{family}, step in fp32", f"{name} in fp32", together[1], together[2])
        self.add(f"{family}, engine", name, together[0], together[2])
        return result


def exported(comparison, words, folder):
    for file in sorted(EXPORTED.glob("*.onnx")):
        if words and file.stem not in words:
            continue
        model = onnx.load(file)
        output = next((o for o in model.graph.output if o.type.tensor_type.elem_type == TensorProto.FLOAT), None)
        if output is None or not any(t.data_type == TensorProto.FLOAT and t.dims for t in model.graph.initializer):
            continue
        random = np.random.default_rng(1)
        feeds = {}
        for port in model.graph.input:
            kind = TYPES[port.type.tensor_type.elem_type]
            dims = [d.dim_value for d in port.type.tensor_type.shape.dim]
            feeds[port.name] = (random.standard_normal(dims).astype(kind) if kind == np.float32
                                else random.integers(0, 2, dims).astype(kind) if kind == np.bool_
                                else np.ones(dims, kind))
        dims = [d.dim_value for d in output.type.tensor_type.shape.dim]
        feeds["training_target"] = random.standard_normal(dims).astype(np.float32)
        loss = f"mse:{output.name}:training_target"
        try:
            result = comparison.whole("exported", file.stem, model, f"{folder}/{file.stem}", feeds, loss)
        except ValueError as error:
            comparison.left_out[str(error)[:60]] += 1
            continue
        if result is not None:
            comparison.layers(file.stem, model, result)


def cases(comparison, folder):
    random = np.random.default_rng(4)
    for name, (x, y, nodes, weights) in CASES.items():
        arrays = {weight: (random.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype(np.float32)
                  for weight, dims in weights.items()}
        if "v" in arrays:
            arrays["v"] = np.abs(arrays["v"]) + np.float32(0.5)
        inner, outer = (",".join(map(str, dims)) for dims in (x, y))
        model = models.model_of(f"(float[{inner}] x) => (float[{outer}] y) {{ {nodes} }}", arrays)
        feeds = {"x": random.standard_normal(x).astype(np.float32), "t": random.standard_normal(y).astype(np.float32)}
        comparison.whole("more layers", name, model, f"{folder}/case", feeds, "mse:y:t", FROZEN.get(name))


def small(comparison, folder):
    import trainer_test
    for task, (make, data, loss, _, _) in trainer_test.TASKS.items():
        model = make()
        batch = model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
        feeds = next(trainer_test.batches(data(), batch, 1))
        comparison.whole("small", task, model, f"{folder}/{task}", feeds, loss)


def main():
    if with_torch.python() is None:
        print("skipped: no Python here has torch (Debian: python3-torch), which gives the gradients to compare with")
        return SKIPPED
    warnings.simplefilter("ignore", RuntimeWarning)  # sums of the loss that fp16 cannot hold
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        cases(comparison, folder)
        small(comparison, folder)
        exported(comparison, sys.argv[1:], folder)
    comparison.torch.close()
    for family, values in sorted(comparison.counts.items()):
        print(f"{family}: {len(values)} gradients, least cosine {min(values):.6f}")
    for reason, count in comparison.left_out.most_common():
        print(f"left out, {count}: {reason}")
    for line in comparison.failed:
        print("FAILED", line)
    return 1 if comparison.failed or not comparison.counts else 0


if __name__ == "__main__":
    sys.exit(main())
