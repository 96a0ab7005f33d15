"""Small decoders in the form that ONNX Runtime GenAI's model builder writes, for tests and bench: caches
in GroupQueryAttention with its rotary positions, fused norms, and float or 4-bit (MatMulNBits) weights.
The names of nodes and values are those of the builder."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
MS = "com.microsoft"


def quantized(weights, block):
    """The blocks, scales and zero points of MatMulNBits for `weights` (rows x columns), and the weights
    that they stand for."""
    rows, columns = weights.shape
    blocks = weights.T.reshape(columns, rows // block, block)
    low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
    scales = np.maximum((high - low) / 15, 1e-6).astype(np.float32)
    zeros = np.clip(np.round(-low / scales), 0, 15).astype(np.uint8)
    codes = np.clip(np.round(blocks / scales[..., None]) + zeros[..., None], 0, 15).astype(np.uint8)
    packed = codes[..., 0::2] | codes[..., 1::2] << 4
    padded = np.pad(zeros, ((0, 0), (0, zeros.shape[1] % 2)))
    exact = (codes.astype(np.float32) - zeros[..., None]) * scales[..., None]
    return packed, scales.reshape(-1), (padded[:, 0::2] | padded[:, 1::2] << 4).reshape(-1), exact.reshape(
        columns, rows).T


def grouped_decoder(layers=2, heads=4, groups=2, size=16, vocabulary=96, longest=512, wide=2, seed=3, block=0,
                    packed=True, accuracy_level=0, window=-1, kv_dim=None):
    """Blocks of grouped attention and a gated layer. `block`: of 4-bit weights; 0: float weights. `packed`: q,
    k and v are one product. `kv_dim`: the name of the caches' last axis, as newer builders write it."""
    random = np.random.default_rng(seed)
    width = heads * size
    nodes, constants = [], []

    def constant(name, values):
        constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(kind, name, inputs, outputs=None, domain="", **attributes):
        outputs = outputs or [name + "/output_0"]
        nodes.append(helper.make_node(kind, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def linear(x, name, rows, columns, output=None):
        weights = (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        initializer = name[1:].replace("/", ".").replace(".MatMul", "") + ".MatMul.weight"
        if not block:
            return node("MatMul", name, [x, constant(initializer, weights)], [output or name + "/output_0"])
        packs, scales, zeros, _ = quantized(weights, block)
        return node("MatMulNBits", name + "_Q4",
                    [x, constant(initializer + "_Q4", packs), constant(initializer + "_scales", scales),
                     constant(initializer + "_zero_points", zeros)], [output or name + "/output_0"], MS,
                    accuracy_level=accuracy_level, bits=4, block_size=block, K=rows, N=columns)

    one = constant("/model/constants/INT64/[1]", np.array([1], np.int64))
    at_one = constant("/model/constants/INT64/1", np.int64(1))
    base = "/model/attn_mask_reformat/attn_mask_subgraph/"
    node("Sub", base + "Sub", [node("ReduceSum", base + "ReduceSum", ["attention_mask", one], keepdims=0), one])
    lengths = node("Cast", base + "Sub/Cast", [base + "Sub/output_0"], to=INT32)
    total = node("Cast", base + "Gather/Cast",
                 [node("Gather", base + "Gather", [node("Shape", base + "Shape", ["attention_mask"]), at_one], axis=0)],
                 to=INT32)
    angles = np.outer(np.arange(longest), 10000.0 ** (-np.arange(0, size, 2) / size))
    tables = [constant("cos_cache", np.cos(angles).astype(np.float32)),
              constant("sin_cache", np.sin(angles).astype(np.float32))]

    words = constant("model.embed_tokens.weight", random.standard_normal((vocabulary, width)).astype(np.float32))
    x = node("Gather", "/model/embed_tokens/Gather", [words, "input_ids"])
    last = kv_dim or size
    inputs = [("input_ids", INT64, ["batch_size", "sequence_length"]),
              ("attention_mask", INT64, ["batch_size", "total_sequence_length"])]
    outputs = [("logits", FLOAT, ["batch_size", "sequence_length", vocabulary])]

    def norm(name, x, skip):
        weights = (1 + 0.1 * random.standard_normal(width)).astype(np.float32)
        scale = constant(name[1:].replace("/", ".") + ".weight", weights)
        if skip is None:
            return node("SimplifiedLayerNormalization", name + "/LayerNorm", [x, scale], axis=-1, epsilon=1e-5,
                        stash_type=1), x
        made = [name + f"/SkipLayerNorm/output_{i}" for i in (0, 3)]
        node("SkipSimplifiedLayerNormalization", name + "/SkipLayerNorm", [x, skip, scale],
             [made[0], "", "", made[1]], MS, epsilon=1e-5)
        return made

    skip = None
    for i in range(layers):
        layer = f"/model/layers.{i}/"
        a, x = norm(layer + "input_layernorm", x, skip)
        kv = groups * size
        if packed:
            parts = [linear(a, layer + "attn/qkv_proj/MatMul", width, width + 2 * kv), "", ""]
        else:
            parts = [linear(a, layer + f"attn/{p}_proj/MatMul", width, n) for p, n in zip("qkv", (width, kv, kv))]
        caches = []
        for kind in ("key", "value"):
            inputs.append((f"past_key_values.{i}.{kind}", FLOAT, ["batch_size", groups, "past_sequence_length", last]))
            outputs.append((f"present.{i}.{kind}", FLOAT, ["batch_size", groups, "total_sequence_length", last]))
            caches.append(inputs[-1][0])
        name = layer + "attn/GroupQueryAttention"
        y = node("GroupQueryAttention", name, [*parts, *caches, lengths, total, *tables],
                 [name + "/output_0", f"present.{i}.key", f"present.{i}.value"], MS, num_heads=heads,
                 kv_num_heads=groups, scale=size ** -0.5, local_window_size=window, softcap=0.0, do_rotary=1, rotary_interleaved=0)
        o = linear(y, layer + "attn/o_proj/MatMul", width, width)
        b, x = norm(layer + "post_attention_layernorm", x, o)
        gate = linear(b, layer + "mlp/gate_proj/MatMul", width, wide * width)
        up = linear(b, layer + "mlp/up_proj/MatMul", width, wide * width)
        act = node("Mul", layer + "mlp/act_fn/Mul", [gate, node("Sigmoid", layer + "mlp/act_fn/Sigmoid", [gate])])
        skip = linear(node("Mul", layer + "mlp/Mul", [act, up]), layer + "mlp/down_proj/MatMul", wide * width, width)
    final, _ = norm("/model/layers.%d/final_norm_layernorm" % layers, x, skip)
    linear(final, "/lm_head/MatMul", width, vocabulary, "logits")
    port = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "main_graph", [port(*p) for p in inputs], [port(*p) for p in outputs], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)])
    made.ir_version = 10
    return made
