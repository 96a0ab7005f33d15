"""Runs ONNX graphs with PyTorch, whose autograd gives the gradients. For a Python that has torch and
not onnx: with_torch.py starts it, and writes the graphs.

    onnx_in_torch.py layers       # each line of stdin is a spec; gradients of each node, and of the whole graph
    onnx_in_torch.py steps SPEC   # trains; each line of stdin is a number of steps to time
"""
import json
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

ONNX_TYPES = {1: None, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: None, 11: None}


def ints(value):
    return [int(v) for v in value.reshape(-1).tolist()]


def window(n, x):
    rank = x.dim() - 2
    strides, dilations = n.get("strides", [1] * rank), n.get("dilations", [1] * rank)
    if n.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or n.get("ceil_mode"):
        raise NotImplementedError("auto_pad, ceil_mode")
    pads = n.get("pads", [0] * 2 * rank)
    around = [p for i in reversed(range(rank)) for p in (pads[i], pads[i + rank])]
    return strides, dilations, around


def conv(n, x, w, b=None):
    strides, dilations, around = window(n, x)
    run = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
    if around[::2] == around[1::2]:
        return run(x, w, b, strides, around[::-2], dilations, n.get("group", 1))
    return run(F.pad(x, around), w, b, strides, 0, dilations, n.get("group", 1))


def conv_transpose(n, x, w, b=None):
    strides, dilations, around = window(n, x)
    run = {3: F.conv_transpose1d, 4: F.conv_transpose2d}[x.dim()]
    if around[::2] != around[1::2]:
        raise NotImplementedError("uneven pads")
    return run(x, w, b, strides, around[::-2], n.get("output_padding", 0), n.get("group", 1), dilations)


def max_pool(n, x):
    strides, dilations, around = window(n, x)
    return F.max_pool2d(F.pad(x, around, value=-math.inf), n["kernel_shape"], strides, 0, dilations)


def average_pool(n, x):
    strides, _, around = window(n, x)
    if around[::2] != around[1::2]:
        raise NotImplementedError("uneven pads")
    return F.avg_pool2d(x, n["kernel_shape"], strides, around[::-2],
                        count_include_pad=bool(n.get("count_include_pad", 0)))


def gemm(n, a, b, c=None):
    a, b = (a.t() if n.get("transA") else a), (b.t() if n.get("transB") else b)
    if c is not None and n.get("alpha", 1) == 1 and n.get("beta", 1) == 1:
        return torch.addmm(c, a, b)
    y = n.get("alpha", 1) * (a @ b)
    return y if c is None else y + n.get("beta", 1) * c


def layer_norm(n, x, s, b=None):
    return F.layer_norm(x, x.shape[n.get("axis", -1) % x.dim():], s, b, n.get("epsilon", 1e-5))


def rms_norm(n, x, s):
    axes = list(range(n.get("axis", -1) % x.dim(), x.dim()))
    return x * torch.rsqrt((x * x).mean(axes, keepdim=True) + n.get("epsilon", 1e-5)) * s


def reshape(n, x, shape):
    sizes = [x.shape[i] if s == 0 and not n.get("allowzero") else s for i, s in enumerate(ints(shape))]
    return x.reshape(sizes)


def slice_(n, x, begins, ends, axes=None, steps=None):
    axes = list(range(len(begins))) if axes is None else ints(axes)
    steps = [1] * len(axes) if steps is None else ints(steps)
    where = [slice(None)] * x.dim()
    for begin, end, axis, step in zip(ints(begins), ints(ends), axes, steps):
        if step < 0:
            raise NotImplementedError("Slice backwards")
        where[axis] = slice(begin, end, step)
    return x[tuple(where)]


def split(n, x, sizes=None):
    axis = n.get("axis", 0)
    if sizes is not None:
        return list(torch.split(x, ints(sizes), axis))
    return list(torch.split(x, -(-x.shape[axis] // n["num_outputs"]), axis))


def pad(n, x, pads, value=None, axes=None):
    if n.get("mode", "constant") != "constant":
        raise NotImplementedError("Pad of another mode")
    axes = list(range(x.dim())) if axes is None else [a % x.dim() for a in ints(axes)]
    sizes, around = ints(pads), [0] * (2 * x.dim())
    for i, axis in enumerate(axes):
        around[2 * (x.dim() - 1 - axis)] = sizes[i]
        around[2 * (x.dim() - 1 - axis) + 1] = sizes[i + len(axes)]
    return F.pad(x, around, value=0.0 if value is None else float(value))


def reduction(function):
    def run(n, x, axes=None):
        axes = n.get("axes") or (ints(axes) if axes is not None else list(range(x.dim())))
        return function(x, axes, bool(n.get("keepdims", 1)))
    return run


def gather(n, x, indices):
    axis = n.get("axis", 0) % x.dim()
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    if axis == 0 and x.dim() == 2 and x.is_floating_point():
        return F.embedding(indices, x)
    taken = torch.index_select(x, axis, indices.reshape(-1))
    return taken.reshape(list(x.shape[:axis]) + list(indices.shape) + list(x.shape[axis + 1:]))


def gather_nd(n, x, indices):
    if n.get("batch_dims", 0):
        raise NotImplementedError("GatherND of batches")
    return x[tuple(indices.unbind(-1))]


def depth_to_space(n, x):
    b, (N, C, H, W) = n["blocksize"], x.shape
    if n.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, b)
    return x.reshape(N, b, b, C // b**2, H, W).permute(0, 3, 4, 1, 5, 2).reshape(N, C // b**2, H * b, W * b)


def unsqueeze(n, x, axes):
    rank = x.dim() + axes.numel()
    for axis in sorted(a % rank for a in ints(axes)):
        x = x.unsqueeze(axis)
    return x


def squeeze(n, x, axes=None):
    kept = {a % x.dim() for a in ints(axes)} if axes is not None else {i for i, s in enumerate(x.shape) if s == 1}
    return x.reshape([s for i, s in enumerate(x.shape) if i not in kept])


def cast(n, x):
    kind = ONNX_TYPES[n["to"]]
    return x.to(torch.get_default_dtype() if kind is None else kind)


OPERATORS = {
    "Identity": lambda n, x: x, "Add": lambda n, a, b: a + b, "Sub": lambda n, a, b: a - b,
    "Mul": lambda n, a, b: a * b,
    "Div": lambda n, a, b: a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc"),
    "Pow": lambda n, a, b: torch.pow(a, b), "Mod": lambda n, a, b: torch.remainder(a, b),
    "Min": lambda n, a, b: torch.minimum(a, b), "Neg": lambda n, x: -x, "Abs": lambda n, x: x.abs(),
    "Sqrt": lambda n, x: x.sqrt(), "Exp": lambda n, x: x.exp(), "Log": lambda n, x: x.log(), "Erf": lambda n, x: x.erf(),
    "Sin": lambda n, x: x.sin(), "Cos": lambda n, x: x.cos(), "Ceil": lambda n, x: x.ceil(),
    "Reciprocal": lambda n, x: 1 / x, "Relu": lambda n, x: F.relu(x), "Tanh": lambda n, x: x.tanh(),
    "Sigmoid": lambda n, x: x.sigmoid(), "Softplus": lambda n, x: F.softplus(x), "Mish": lambda n, x: F.mish(x),
    "HardSwish": lambda n, x: F.hardswish(x), "LeakyRelu": lambda n, x: F.leaky_relu(x, n.get("alpha", 0.01)),
    "Gelu": lambda n, x: F.gelu(x, approximate=n.get("approximate", "none")),
    "Clip": lambda n, x, low=None, high=None: torch.clamp(x, low, high),
    "Where": lambda n, c, a, b: torch.where(c, a, b), "And": lambda n, a, b: a & b, "Not": lambda n, a: ~a,
    "Equal": lambda n, a, b: a == b, "Less": lambda n, a, b: a < b, "LessOrEqual": lambda n, a, b: a <= b,
    "GreaterOrEqual": lambda n, a, b: a >= b, "IsNaN": lambda n, x: torch.isnan(x),
    "MatMul": lambda n, a, b: a @ b, "Gemm": gemm, "Einsum": lambda n, *x: torch.einsum(n["equation"], *x),
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "AveragePool": average_pool,
    "GlobalAveragePool": lambda n, x: x.mean(list(range(2, x.dim())), keepdim=True),
    "Softmax": lambda n, x: F.softmax(x, n.get("axis", -1)),
    "LogSoftmax": lambda n, x: F.log_softmax(x, n.get("axis", -1)),
    "LayerNormalization": layer_norm, "RMSNormalization": rms_norm, "SimplifiedLayerNormalization": rms_norm,
    "InstanceNormalization": lambda n, x, s, b: F.instance_norm(x, weight=s, bias=b, eps=n.get("epsilon", 1e-5)),
    "GroupNormalization": lambda n, x, s, b: F.group_norm(x, n["num_groups"], s, b, n.get("epsilon", 1e-5)),
    "BatchNormalization": lambda n, x, s, b, m, v: F.batch_norm(x, m, v, s, b, False, 0.0, n.get("epsilon", 1e-5)),
    "ReduceSum": reduction(lambda x, axes, keep: x.sum(axes, keep)),
    "ReduceMean": reduction(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceL2": reduction(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    "Reshape": reshape, "Transpose": lambda n, x: x.permute(n.get("perm", list(reversed(range(x.dim()))))),
    "Flatten": lambda n, x: x.reshape(math.prod(x.shape[:n.get("axis", 1)]), -1),
    "Concat": lambda n, *x: torch.cat(x, n["axis"]), "Slice": slice_, "Split": split, "Pad": pad,
    "Unsqueeze": unsqueeze, "Squeeze": squeeze, "Cast": cast, "Gather": gather, "GatherND": gather_nd,
    "GatherElements": lambda n, x, i: torch.gather(x, n.get("axis", 0), i),
    "Expand": lambda n, x, shape: x.expand(torch.broadcast_shapes(x.shape, ints(shape))),
    "Tile": lambda n, x, counts: x.repeat(ints(counts)), "DepthToSpace": depth_to_space,
    "Trilu": lambda n, x, k=0: (torch.triu if n.get("upper", 1) else torch.tril)(x, int(k)),
    "Shape": lambda n, x: torch.tensor(list(x.shape)[n.get("start", 0):n.get("end", None)]),
    "Constant": lambda n: n["value"],
    "ConstantOfShape": lambda n, shape: n["value"].reshape(()).expand(ints(shape)) if "value" in n
    else torch.zeros(ints(shape)),
}


class Graph:
    """Nodes of a spec (with_torch.py), their constants, and data."""

    def __init__(self, path, dtype):
        torch.set_default_dtype(dtype)
        with open(f"{path}.json") as file:
            self.spec = json.load(file)
        self.values = {name: self.tensor(array) for name, array in np.load(f"{path}.npz").items()}
        for node in self.spec["nodes"]:
            if "value" in node["attributes"]:
                node["attributes"]["value"] = self.values[node["attributes"]["value"]]
        missing = {node["op"] for node in self.spec["nodes"]} - set(OPERATORS)
        if missing:
            raise NotImplementedError(", ".join(sorted(missing)))
        self.weights = {name: self.values[name].requires_grad_() for name in self.spec["weights"]}
        self.calls = [(OPERATORS[n["op"]], n["attributes"], n["inputs"], n["outputs"])
                      for n in self.spec["nodes"]]

    @staticmethod
    def tensor(array):
        tensor = torch.from_numpy(np.array(array))
        return tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor

    def run(self, feeds, each=None):
        values = {**self.values, **feeds}
        for function, attributes, inputs, outputs in self.calls:
            given = [values[name] if name else None for name in inputs]
            made = function(attributes, *given)
            made = made if isinstance(made, list) else [made]
            if each:
                each(function, attributes, given, made[0])
            values.update(zip(outputs, made))
        return values

    def loss(self, values):
        kind, output, target = self.spec["loss"]
        y, t = values[output], values[target]
        if kind == "mse":
            return F.mse_loss(y, t)
        if y.dim() > 2:
            y, t = y.reshape(-1, y.shape[-1]), t.reshape(-1)
        return F.cross_entropy(y, t)


def gradients_of_layer(function, attributes, given, factors):
    leaves = [x.detach().clone().requires_grad_() if x is not None and x.is_floating_point() else x
              for x in given]
    y = function(attributes, *leaves)
    (y[0] if isinstance(y, list) else y).backward(factors)
    return {str(i): x.grad.numpy() for i, x in enumerate(leaves)
            if x is not None and x.requires_grad and x.grad is not None}


def layers():
    for line in sys.stdin:
        try:
            layers_of(line.rstrip("\n"))
            print("", flush=True)
        except (NotImplementedError, RuntimeError) as error:
            print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)


def layers_of(spec):
    """For each distinct node of spec["layers"]: its inputs, random factors of its output, and the
    gradients of the sum of their products; and the gradients of the whole graph's loss."""
    graph = Graph(spec, torch.float64)
    saved, seen, random, nodes = {}, set(), np.random.default_rng(3), iter(graph.spec["nodes"])

    def each(function, attributes, given, made):
        node = next(nodes)
        place = node["place"]
        key = (node["op"], str({k: v for k, v in attributes.items() if k != "value"}),
               str([None if x is None else tuple(x.shape) for x in given]))
        if node["op"] not in graph.spec["layers"] or not made.is_floating_point() or key in seen:
            return
        seen.add(key)
        factors = torch.from_numpy(random.standard_normal(tuple(made.shape)))
        for i, x in enumerate(given):
            if x is not None:
                saved[f"{place}/in/{i}"] = x.detach().numpy()
        saved[f"{place}/factors"] = factors.numpy()
        for i, gradient in gradients_of_layer(function, attributes, given, factors).items():
            saved[f"{place}/gradient/{i}"] = gradient

    values = graph.run({}, each)
    loss = graph.loss(values)
    loss.backward()
    saved["loss"] = loss.detach().numpy()
    for name, weight in graph.weights.items():
        if weight.grad is not None:
            saved[f"gradient/{name}"] = weight.grad.numpy()
    np.savez(f"{spec}.result.npz", **saved)


def steps(spec):
    graph = Graph(spec, torch.float32)
    torch.set_num_threads(graph.spec["threads"])
    torch.set_flush_denormal(True)
    words = graph.spec["optimizer"]
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[words.pop("name")]
    optimizer = make(list(graph.weights.values()), foreach=True, **words)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            optimizer.zero_grad(set_to_none=True)
            loss = graph.loss(graph.run({}))
            loss.backward()
            optimizer.step()
            last = loss.item()
        print(json.dumps({"seconds": time.perf_counter() - begin, "loss": last}), flush=True)


if __name__ == "__main__":
    {"layers": layers, "steps": steps}[sys.argv[1]](*sys.argv[2:])
