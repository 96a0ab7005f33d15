"""Small decoders with a cache, as exporters write them, that tests and bench share."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def decoder(layers=2, heads=2, size=8, vocabulary=64, longest=2048, seed=3, learned=True, buffer=0,
            batch=1, write="ScatterND"):
    """Blocks of attention and a gated layer, with free lengths. `learned`: position_ids is an input;
    else positions come from the length of the cache, as in models without that input. `buffer`: the caches have
    this many rows, and new ones are written at the input cache_position by the operator `write` (static caches, as
    torch.export writes index_copy with transposes around ScatterND). `batch` may be the name of a free size."""
    random = np.random.default_rng(seed)
    width = heads * size
    nodes, constants = [], []

    def constant(name, values):
        constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weights(name, *shape):
        return constant(name, (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def linear(x, name, rows, columns):
        return node("MatMul", [x, weights(name + ".w", rows, columns)], name)

    def normed(x, name):
        scale = constant(name + ".scale", np.ones(width, np.float32))
        bias = constant(name + ".bias", np.zeros(width, np.float32))
        return node("LayerNormalization", [x, scale, bias], name, axis=-1)

    constant("heads", np.array([0, -1, heads, size], np.int64))
    constant("flat", np.array([0, -1, width], np.int64))
    constant("middle", np.array([1, 2], np.int64))
    constant("one", np.float32(1))
    constant("far", np.float32(-65504))
    constant("scale", np.float32(size ** -0.5))
    constant("none", np.int64(0))
    constant("first", np.array([0], np.int64))
    constant("behind", np.array([1], np.int64))
    constant("step", np.int64(1))
    constant("nothing", np.float32(0))
    if buffer:
        constant("keys", np.arange(buffer))
        positions = queries = "cache_position"
        if write == "TensorScatter":
            node("Gather", [queries, "first"], "start", axis=0)
    else:  # A token sees those before it: keys 0 to t, queries t - n to t.
        node("Squeeze", [node("Shape", ["attention_mask"], "t0", start=1, end=2)], "t")
        node("Squeeze", [node("Shape", ["input_ids"], "n0", start=1, end=2)], "n")
        queries = node("Range", [node("Sub", ["t", "n"], "p"), "t", "step"], "queries")
        node("Range", ["none", "t", "step"], "keys")
        positions = "position_ids" if learned else node("Unsqueeze", [queries, "first"], "places")
    node("LessOrEqual", ["keys", node("Unsqueeze", [queries, "behind"], "rows")], "seen")
    table = constant("table", (random.standard_normal((longest, width)) * 0.3).astype(np.float32))
    words = constant("words", random.standard_normal((vocabulary, width)).astype(np.float32))
    x = node("Add", [node("Gather", [words, "input_ids"], "embedded"),
                     node("Gather", [table, positions], "placed")], "x")
    causal = node("Where", ["seen", "nothing", "far"], "masked" if buffer else "causal")
    inputs = [("input_ids", INT64, [batch, "sequence_length"])]
    if buffer:
        inputs.append(("cache_position", INT64, ["sequence_length"]))
    else:
        node("Cast", [node("Unsqueeze", ["attention_mask", "middle"], "m0")], "m1", to=FLOAT)
        node("Add", [node("Mul", [node("Sub", ["one", "m1"], "m2"), "far"], "m3"), causal], "m4")
        node("Max", ["m4", "far"], "masked")
        inputs.append(("attention_mask", INT64, [batch, "past_sequence_length + sequence_length"]))
    if learned and not buffer:
        inputs.append(("position_ids", INT64, [batch, "sequence_length"]))
    outputs = [("logits", FLOAT, [batch, "sequence_length", vocabulary])]
    for i in range(layers):
        name = f"layer{i}."
        a = normed(x, name + "a")
        parts = {}
        for part in "qkv":
            flat = linear(a, name + part, width, width)
            split = node("Reshape", [flat, "heads"], name + part + "s")
            parts[part] = node("Transpose", [split], name + part + "t", perm=[0, 2, 1, 3])
        for part, kind in (("k", "key"), ("v", "value")):
            past, present = f"past_key_values.{i}.{kind}", f"present.{i}.{kind}"
            inputs.append((past, FLOAT, [batch, heads, buffer or "past_sequence_length", size]))
            outputs.append((present, FLOAT, [batch, heads, buffer or "past_sequence_length + sequence_length", size]))
            if buffer and write == "TensorScatter":
                node(write, [past, parts[part], "start"], present)
            elif buffer:
                rows = [node("Transpose", [old], present + f".{i}", perm=[2, 0, 1, 3])
                        for i, old in enumerate((past, parts[part]))]
                written = node("ScatterND", [rows[0], "rows", rows[1]], present + ".written")
                node("Transpose", [written], present, perm=[1, 2, 0, 3])
            else:
                node("Concat", [past, parts[part]], present, axis=2)
        kt = node("Transpose", [f"present.{i}.key"], name + "keys", perm=[0, 1, 3, 2])
        scores = node("Mul", [node("MatMul", [parts["q"], kt], name + "s0"), "scale"], name + "s1")
        shares = node("Softmax", [node("Add", [scores, "masked"], name + "s2")], name + "s3", axis=-1)
        mixed = node("MatMul", [shares, f"present.{i}.value"], name + "m0")
        back = node("Reshape", [node("Transpose", [mixed], name + "m1", perm=[0, 2, 1, 3]), "flat"], name + "m2")
        x = node("Add", [x, linear(back, name + "o", width, width)], name + "x")
        b = normed(x, name + "b")
        gate = node("Sigmoid", [linear(b, name + "g", width, 2 * width)], name + "gate")
        up = node("Mul", [gate, linear(b, name + "u", width, 2 * width)], name + "up")
        x = node("Add", [x, linear(up, name + "d", 2 * width, width)], name + "y")
    linear(normed(x, "last"), "logits", width, vocabulary)
    port = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "decoder", [port(*p) for p in inputs], [port(*p) for p in outputs], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24 if write == "TensorScatter" else 21)])
    made.ir_version = 10
    return made
