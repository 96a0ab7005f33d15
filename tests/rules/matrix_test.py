"""Our validators agree with the matrix of MIL operations and families (tables/op_matrix.json).

    matrix_test.py ANEMONE

Asks `anemone confirm` about the smallest valid call of every operation on the targets of each
family column, without and with --rewrites. Expected: native is accepted; family_gated and no_path
are refused; bridge is refused without rewrites and `rewritten` with them. For operations without a
tensor form only the answer without rewrites is compared.
"""

import collections
import json
import sys

from confirm import TABLES, confirm_all

MATRIX = TABLES / "op_matrix.json"
COLUMNS = {"H13": ["h13"], "H14": ["h14"], "H15": ["h15"], "H16_H17": ["h16", "h17s", "h18"]}

# Cells that do not agree, with the reason: (operation, column).
_STATE = "three chapters and a probe say that the M1 refuses it (conflicts.md C-native-state)"
_HOST = "its bridge is a generator on the host: a CPU segment, not an engine segment"
_AUTHORED = "its bridge is a netplist of its own, which a program of the conversion route cannot hold"
DIFFERENT = {
    ("upsample_nearest_neighbor", "H13"):
        "the compiler has a software route, which a probe saw accepted (conflicts.md C-resize-m1)",
    ("read_state", "H13"): _STATE,
    ("write_state", "H13"): _STATE,
    ("random_uniform", "H13"): _HOST,
    ("random_uniform", "H14"): _HOST,
    **{(op, column): _AUTHORED for op in ("reduce_argmin", "global_argmax", "global_argmin")
       for column in ("H13", "H14")},
}


def t(*shape, dtype="fp16", constant=False):
    return {"shape": list(shape), "dtype": dtype, "role": "const" if constant else "input"}


def c(*shape, dtype="fp16"):
    return {"shape": list(shape), "dtype": dtype}


X = t(4, 8)
IMAGE = t(1, 4, 8, 8)

# (arguments, attributes) by operation.
CALLS = {}


def calls(names, arguments, **attributes):
    for name in names.split():
        CALLS[name] = (arguments, attributes)


calls("conv ne_conv", [IMAGE], strides=[1, 1], groups=1, weight=c(4, 4, 3, 3))
calls("conv_transpose", [IMAGE], strides=[2, 2], groups=1, weight=c(4, 4, 2, 2))
calls("linear", [X], weight=c(4, 8))
calls("linear_activation", [X], weight=c(4, 8), mode="relu")
calls("matmul ne_matmul", [t(4, 8), t(8, 4)])
calls("einsum", [t(1, 2, 4, 8), t(1, 2, 8, 4)], equation="bhij,bhjk->bhik")
calls("avg_pool max_pool l2_pool ne_pool pe_pool", [IMAGE], kernel=[2, 2], strides=[2, 2])
calls("pe_elementwise", [X, X], mode="add")
calls("pe_goc ne_bypass", [X])
calls("scaled_dot_product_attention", [t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8)])
calls("batch_norm", [IMAGE], mean=c(4), variance=c(4))
calls("layer_norm", [t(1, 4, 8)], axes=[-1])
calls("instance_norm", [IMAGE])
calls("l2_norm", [IMAGE])
calls("local_response_norm", [IMAGE], size=3)
calls("abs square sqrt rsqrt inverse logical_not relu relu6 sigmoid tanh silu softsign erf exp exp2 "
      "log sign ceil floor round identity atan tan asin acos atanh asinh acosh sinh cosh sin cos "
      "softplus gelu", [X])
calls("add sub mul real_div floor_div pow maximum minimum mod equal not_equal greater greater_equal "
      "less less_equal logical_and logical_or logical_xor", [X, X])
calls("cumsum", [X], axis=-1)
calls("select", [X, X, X])
calls("leaky_relu elu threshold thresholded_relu", [X], alpha=0.5)
calls("prelu", [IMAGE], alpha=c(4))
calls("clamped_relu", [X], alpha=0.5, beta=6.0)
calls("clip", [X], alpha=-1.0, beta=1.0)
calls("sigmoid_hard scaled_tanh", [X], alpha=0.2, beta=0.5)
calls("softplus_parametric", [IMAGE], alpha=c(4), beta=c(4))
calls("softmax", [X], axis=-1)
calls("reduce_sum reduce_mean reduce_max reduce_min reduce_sum_square reduce_l1_norm reduce_l2_norm "
      "reduce_log_sum reduce_log_sum_exp reduce_prod", [X], axes=[-1], keep_dims=True)
calls("reduce_argmax reduce_argmin", [X], axis=-1, keep_dims=True)
calls("global_argmax global_argmin", [t(1, 1, 1, 64)], Dimension="Width")
calls("reshape", [X], shape=[8, 4])
calls("reshape_like", [X, t(8, 4)])
calls("expand_dims", [X], axes=[0])
calls("squeeze", [t(1, 4, 8)], axes=[0])
calls("flatten2d", [IMAGE], axis=1)
calls("transpose", [X], perm=[1, 0])
calls("concat", [X, X], axis=0)
calls("split", [X], axis=0, num_splits=2)
calls("stack", [X, X], axis=0)
calls("pad", [IMAGE], pad=[1, 1, 1, 1], mode="constant")
calls("slice_by_size", [X], begin=[0, 2], size=[4, 3])
calls("slice_by_index", [X], begin=[0, 2], end=[4, 5])
calls("slice_update", [X, t(4, 3)], begin=[0, 2], end=[4, 5])
calls("reverse", [X], axes=[1])
calls("reverse_sequence", [t(2, 8)], lengths=[4, 8])
calls("tile", [X], reps=[1, 2])
calls("gather", [X], indices=c(3, dtype="uint16"), axis=0)
calls("gather_along_axis", [X], indices=c(4, 8, dtype="uint16"), axis=0)
calls("gather_nd", [X], indices=c(3, 2, dtype="uint16"))
calls("scatter scatter_along_axis scatter_nd", [X, t(2), t(2, 8)], axis=0)
calls("depth_to_space pixel_shuffle", [t(1, 4, 4, 4)], block_size=2)
CALLS["pixel_shuffle"] = ([t(1, 4, 4, 4)], {"upscale_factor": 2})
calls("space_to_depth", [t(1, 4, 4, 4)], block_size=2)
calls("pixel_unshuffle", [t(1, 4, 4, 4)], downscale_factor=2)
calls("space_to_batch", [t(1, 4, 4, 4)], block_shape=[2, 2], paddings=[[0, 0], [0, 0]])
calls("batch_to_space", [t(4, 4, 4, 4)], block_shape=[2, 2], crops=[[0, 0], [0, 0]])
calls("fill", [], shape=[4, 8], value=1.0)
calls("fill_like", [X], value=1.0)
calls("range_1d", [], start=0.0, end=8.0, step=1.0)
calls("crop", [IMAGE], crop_height=[1, 1], crop_width=[1, 1])
calls("band_part", [X], lower=1, upper=1)
calls("non_zero shape", [X])
calls("one_hot", [t(4)], depth=8)
calls("sliding_windows", [t(1, 8)], axis=1, size=3, stride=1)
calls("resize", [IMAGE], shape=[16, 16])
calls("resize_bilinear resize_nearest_neighbor", [IMAGE], target_size_height=16,
      target_size_width=16)
calls("upsample_bilinear upsample_nearest_neighbor", [IMAGE], scale_factor_height=2,
      scale_factor_width=2)
calls("crop_resize", [t(1, 3, 32, 32), t(1, 4, 1, 1)], target_height=8, target_width=8)
calls("resample", [t(1, 3, 32, 32), t(1, 2, 16, 16)])
calls("affine", [t(1, 3, 32, 32), t(1, 6)], output_height=16, output_width=16)
calls("pixel_buffer_to_tensor", [t(1, 3, 64, 64, dtype="pixel_buffer<FMT_BGRA8>")])
calls("tensor_to_pixel_buffer gamma degamma", [t(1, 3, 64, 64)])
calls("cast", [X], dtype="bool")
calls("quantize", [X], scale=0.1, output_dtype="int8")
calls("dequantize", [t(1, 3, 8, 8, dtype="uint8")], scale=0.1)
calls("const", [], val=c(4, 4))
calls("constexpr_affine_dequantize", [], quantized_data=c(4, 4, dtype="int8"), scale=0.1)
calls("constexpr_lut_to_dense", [], indices=c(4, 4, dtype="uint8"), lut=c(16))
calls("constexpr_lut_to_sparse", [], indices_mask=c(4, 4, dtype="uint8"), lut=c(16))
calls("constexpr_blockwise_shift_scale", [], data=c(4, 4, dtype="int8"), scale=c(4, 1))
calls("constexpr_sparse_blockwise_shift_scale", [], data_mask=c(4, 4, dtype="uint8"),
      nonzero_data=c(8, dtype="int8"), scale=c(4, 1))
calls("constexpr_sparse_to_dense", [], nonzero_data=c(8), mask=c(4, 4, dtype="uint8"))
calls("constexpr_cast", [], source=c(4, 4), output_dtype="fp32")
calls("read_state", [t(1, 4, 1, 64)])
calls("write_state", [t(1, 4, 1, 64), t(1, 4, 1, 64)])
calls("tensor_buffer_to_tensor tensor_to_tensor_buffer circular_buffer_to_tensor "
      "tensor_to_circular_buffer", [t(1, 4, 1, 64)])
calls("cond while_loop call", [X])
calls("gru lstm rnn", [t(4, 1, 8)], hidden=8)
calls("cross_product", [t(1, 3, 1, 1), t(1, 3, 1, 1)])
calls("cost_volume", [t(1, 1, 3, 3), t(1, 1, 3, 4)], DisparityRange=1)
calls("matrix_decomposition", [t(1, 9, 1, 1)])
calls("non_maximum_suppression", [t(1, 64, 4), t(1, 64, 2)], iou_threshold=0.5,
      score_threshold=0.5, max_boxes=8)
calls("topk", [t(4, 16)], k=5, axis=-1, ascending=False)
calls("argsort", [t(4, 16)], axis=-1, ascending=True)
calls("random_uniform", [], shape=[1, 1, 1, 8], low=0.0, high=1.0)
calls("random_bernoulli", [], shape=[8], prob=0.5)
calls("random_normal", [], shape=[8])
calls("random_categorical", [X], size=1)
calls("list_gather list_length list_read list_scatter list_write", [])
calls("make_list", [], init_length=4, elem_shape=[8])

# Operations without a tensor form: constants, state and lists, control flow, image buffers.
WITHOUT_TENSOR_FORM = set("""
    const constexpr_affine_dequantize constexpr_lut_to_sparse constexpr_blockwise_shift_scale
    constexpr_sparse_blockwise_shift_scale tensor_buffer_to_tensor tensor_to_tensor_buffer
    circular_buffer_to_tensor tensor_to_circular_buffer cond while_loop call pixel_buffer_to_tensor
    tensor_to_pixel_buffer gamma degamma pe_goc ne_bypass non_maximum_suppression
    """.split())


def difference(op, status, plain, rewritten):
    for result in (plain, rewritten):
        if "error" in result:
            return f"error: {result['error']}"
    if status == "native":
        return None if plain["verdict"] == "native" else f"{plain['layer']}: {plain['message']}"
    if plain["verdict"] != "rejected":
        return plain["verdict"]
    if status == "bridge" and op not in WITHOUT_TENSOR_FORM and rewritten["verdict"] != "rewritten":
        return f"with rewrites: {rewritten['verdict']} ({rewritten['layer']}: {rewritten['message']})"
    return None


def main():
    matrix = json.loads(MATRIX.read_text())
    rows = {row["op"]: row["status_by_family"] for row in matrix["ops"] + matrix["extra_ops"]}
    missing = sorted(set(rows) - set(CALLS))
    assert not missing, f"no call for {missing}"
    cases, cells = [], []
    for op, statuses in rows.items():
        arguments, attributes = CALLS[op]
        for column, targets in COLUMNS.items():
            for target in targets:
                cells.append((op, column, statuses[column]))
                cases.append({"id": f"{op}-{target}", "op": op, "target": target, "route": "mil",
                              "inputs": [{"name": "xyz"[i] if i < 3 else f"x{i}", **argument}
                                         for i, argument in enumerate(arguments)],
                              "attrs": attributes})
    plain, rewritten = (confirm_all(sys.argv[1], cases),
                        confirm_all(sys.argv[1], cases, "--rewrites"))
    agreeing, total, wrong = collections.Counter(), collections.Counter(), 0
    for (op, column, status), a, b in zip(cells, plain, rewritten):
        why = difference(op, status, a, b)
        total[status] += 1
        agreeing[status] += why is None
        if (why is None) == ((op, column) in DIFFERENT):
            wrong += 1
            print(f"{a['id']}: want {status}: {why or 'agrees; remove it from DIFFERENT'}")
    for status in total:
        print(f"{status:12} {agreeing[status]:4} of {total[status]}")
    print(f"cells agreeing {sum(agreeing.values())} of {sum(total.values())} "
          f"({len(rows)} operations)")
    for (op, column), why in DIFFERENT.items():
        print(f"different: {op} on {column}: {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
