"""Programs with a published time, as ONNX models. Their weights are zeros."""
import math
import pathlib
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper

LAYERS, WIDTH, HEADS, WORDS = 12, 768, 12, 50257  # GPT-2 124M
LEAST_ROWS = 16  # orion.json surfaces, min_decode_seq
CACHE = 64       # positions of the key and value caches; the paper's text has 64 tokens


class Program(NamedTuple):
    words: str
    model: onnx.ModelProto
    target: str
    published_us: float
    source: str


def value(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def model(nodes, x, y, weights):
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, dims, bytes(4 * math.prod(dims)), raw=True)
               for name, dims in weights.items()]
    graph = helper.make_graph(nodes, "program", [value("x", x)], [value("y", y)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def convolution(kernel, inputs, outputs, size):
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[kernel // 2] * 4)
    return model([node], [1, inputs, size, size], [1, outputs, size, size],
                 {"w": [outputs, inputs, kernel, kernel]})


def products(count, rows, size):
    names = ["x", *(f"h{i}" for i in range(1, count)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(count)]
    return model(nodes, [rows, size], [rows, size], {f"w{i}": [size, size] for i in range(count)})


def of_m1(facts):
    for row in facts["golden_conv"]:
        kernel, size = row["kernel"], row["spatial"]
        yield Program(f"{kernel}x{kernel} convolution, {row['cin']} to {row['cout']} channels, {size}x{size}",
                      convolution(kernel, row["cin"], row["cout"], size), "h13", row["measured_m1_us"],
                      row["source"])
    for row in facts["golden_ramp"]:
        size = row["spatial"]
        yield Program(f"3x3 convolution, 64 channels, {size}x{size}", convolution(3, 64, 64, size), "h13",
                      1000 * row["latency_ms"], row["source"])
    others = {row["what"]: row for row in facts["golden_other"]}
    row = others["eight 1024-square fp16 matmuls fused (M1)"]
    yield Program("8 products of 1024x1024 matrices in a chain", products(8, 1024, 1024), "h13",
                  1000 * row["ms"], row["source"])
    row = others["64-element linear (M1)"]
    linear = model([helper.make_node("Gemm", ["x", "w"], ["y"])], [1, 64], [1, 64], {"w": [64, 64]})
    yield Program("fully connected layer of 64", linear, "h13", 1000 * row["ms"], row["source"])


def of_m2(facts):
    rows = facts["weight_forms"]
    by_width = next(row for row in rows["rows"] if "latency_ms" in row)["latency_ms"]
    for width, times in by_width.items():
        yield Program(f"1x{width} by {width}x{width} matrix product", products(1, 1, int(width)), "h14",
                      1000 * times["fp16"], rows["source"].split(",")[0].replace("tables", "table"))


def of_m4_max(figures):
    """(program, published microseconds on the CPU or None)"""
    channels, words, positions = 768, 32000, 256  # Stories110M, orion-repo training source

    def program(words, model, name, has_cpu=True):
        row = figures[name]
        cpu_us = 1000 * row["value"][0] if has_cpu else None  # otherwise the time to compile
        return Program(words, model, "h16g", 1000 * row["value"][1], row["source"]), cpu_us

    dims = [1, 256, 1, 64]
    add = model([helper.make_node("Add", ["x", "x2"], ["y"])], dims, dims, {})
    add.graph.input.append(value("x2", dims))
    yield program("sum of two values of 256x1x64", add, "hello_add", has_cpu=False)
    dims = [1, words, 1, positions]
    softmax = model([helper.make_node("Softmax", ["x"], ["y"], axis=1)], dims, dims, {})
    yield program("softmax of 32000 channels, 256 positions", softmax, "softmax_32000")
    classifier = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [positions, channels],
                       [positions, words], {"w": [channels, words]})
    yield program("768 to 32000 channels, 256 positions", classifier, "classifier_fwd")


class Decode:
    """A decode step of GPT-2 124M. `on_cpu`: the outputs that the paper's runtime computes on the CPU."""

    def __init__(self, rows):
        self.rows, self.nodes, self.inputs, self.on_cpu = rows, [], [value("x", [rows, WIDTH])], []
        self.tensors, self.bytes = {}, 0

    def add(self, operator, inputs, on_cpu=False, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        self.on_cpu += names if on_cpu else []
        return names[0] if outputs == 1 else names

    def weight(self, name, dims):
        """A tensor in the file weights.bin, which is a hole."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims,
                             data_location=TensorProto.EXTERNAL)
        size = 4 * math.prod(dims)
        for key, text in (("location", "weights.bin"), ("offset", self.bytes), ("length", size)):
            tensor.external_data.add(key=key, value=str(text))
        self.bytes += -(-size // 4096) * 4096
        self.tensors[name] = tensor
        return name

    def shape(self, *dims):
        name = "shape_" + "_".join(map(str, dims))
        self.tensors[name] = helper.make_tensor(name, TensorProto.INT64, [len(dims)], dims)
        return name

    def norm(self, x, name):
        scale, bias = (self.weight(f"{name}_{part}", [WIDTH]) for part in "gb")
        return self.add("LayerNormalization", [x, scale, bias], axis=-1)

    def linear(self, x, name, inputs, outputs):
        return self.add("Gemm", [x, self.weight(f"{name}_w", [inputs, outputs]),
                                 self.weight(f"{name}_b", [outputs])])

    def attention(self, x, name):
        size, parts = WIDTH // HEADS, self.linear(x, f"{name}_qkv", WIDTH, 3 * WIDTH)
        query, *_ = self.add("Split", [parts], on_cpu=True, outputs=3, axis=1, num_outputs=3)
        query = self.add("Reshape", [query, self.shape(self.rows, HEADS, size)], on_cpu=True)
        query = self.add("Transpose", [query], on_cpu=True, perm=[1, 0, 2])
        keys, values = f"{name}_keys", f"{name}_values"
        self.inputs += [value(keys, [HEADS, size, CACHE]), value(values, [HEADS, CACHE, size])]
        scores = self.add("MatMul", [query, keys], on_cpu=True)
        weights = self.add("Softmax", [scores], on_cpu=True, axis=-1)
        mixed = self.add("MatMul", [weights, values], on_cpu=True)
        mixed = self.add("Transpose", [mixed], on_cpu=True, perm=[1, 0, 2])
        mixed = self.add("Reshape", [mixed, self.shape(self.rows, WIDTH)], on_cpu=True)
        return self.linear(mixed, f"{name}_out", WIDTH, WIDTH)

    def save(self, folder):
        x = "x"
        for i in range(LAYERS):
            x = self.add("Add", [x, self.attention(self.norm(x, f"norm{i}"), f"attention{i}")])
            h = self.linear(self.norm(x, f"norm{i}_2"), f"up{i}", WIDTH, 4 * WIDTH)
            h = self.linear(self.add("Gelu", [h], approximate="tanh"), f"down{i}", 4 * WIDTH, WIDTH)
            x = self.add("Add", [x, h])
        logits = self.add("MatMul", [self.norm(x, "norm"), self.weight("words", [WIDTH, WORDS])], on_cpu=True)
        graph = helper.make_graph(self.nodes, "decode", self.inputs, [value(logits, [self.rows, WORDS])],
                                  list(self.tensors.values()))
        path = pathlib.Path(folder, f"decode{self.rows}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        with pathlib.Path(folder, "weights.bin").open("wb") as weights:
            weights.truncate(self.bytes)
        return path
