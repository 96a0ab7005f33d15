"""Runs a Core ML package on NumPy: opens it with coremltools, which checks the types of all
operations for the package's system, and computes each operation from MIL's public documentation
(https://apple.github.io/coremltools/source/coremltools.converters.mil.mil.ops.defs.html).

    package = Package("net.mlpackage")
    outputs = package.run({"x": x})

Products, convolutions and pools are computed by ONNX Runtime in fp32. Each result has the type that
coremltools found for it, so fp16 is rounded as often as there are operations.
"""

import contextlib
import logging
import math
import pathlib

import numpy
import onnx
import onnxruntime
from onnx import helper

logging.disable(logging.WARNING)  # the libraries that only a Mac has are missing
import coremltools  # noqa: E402
from coremltools.converters.mil.frontend.milproto.load import load as load_program  # noqa: E402
from coremltools.converters.mil.mil.types.symbolic import is_symbolic  # noqa: E402

logging.disable(logging.NOTSET)

OPERATIONS = {}


def operation(*names):
    def add(function):
        for name in names:
            OPERATIONS[name] = function
        return function
    return add


def by_onnx_runtime(kind, inputs, count=1, **attributes):
    """One ONNX operator, in fp32."""
    inputs = [numpy.ascontiguousarray(x, numpy.float32) for x in inputs]
    names = [f"i{i}" for i in range(len(inputs))]
    outputs = [f"o{i}" for i in range(count)]
    node = helper.make_node(kind, names, outputs, **attributes)
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(n, 1, x.shape) for n, x in zip(names, inputs)],
        [helper.make_tensor_value_info(n, 1, None) for n in outputs])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def add_functions():
    f = numpy.float32
    erf = numpy.vectorize(math.erf, otypes=[f])
    unary = {
        "abs": numpy.abs, "acos": numpy.arccos, "asin": numpy.arcsin, "atan": numpy.arctan,
        "atanh": numpy.arctanh, "ceil": numpy.ceil, "cos": numpy.cos, "cosh": numpy.cosh,
        "erf": erf, "exp": numpy.exp, "exp2": numpy.exp2, "floor": numpy.floor,
        "identity": lambda x: x, "logical_not": numpy.logical_not,
        "relu": lambda x: numpy.maximum(x, 0), "relu6": lambda x: numpy.clip(x, 0, 6),
        "round": numpy.rint, "sigmoid": sigmoid, "sign": numpy.sign,
        "silu": lambda x: x / (1 + numpy.exp(-x)), "sin": numpy.sin, "sinh": numpy.sinh,
        "softplus": lambda x: numpy.logaddexp(x, 0), "softsign": lambda x: x / (1 + numpy.abs(x)),
        "sqrt": numpy.sqrt, "square": numpy.square, "tan": numpy.tan, "tanh": numpy.tanh,
    }
    binary = {
        "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "real_div": numpy.divide,
        "floor_div": numpy.floor_divide, "mod": numpy.mod, "pow": numpy.power,
        "maximum": numpy.maximum, "minimum": numpy.minimum, "equal": numpy.equal,
        "not_equal": numpy.not_equal, "less": numpy.less, "less_equal": numpy.less_equal,
        "greater": numpy.greater, "greater_equal": numpy.greater_equal,
        "logical_and": numpy.logical_and, "logical_or": numpy.logical_or,
        "logical_xor": numpy.logical_xor,
    }
    for name, function in unary.items():
        OPERATIONS[name] = lambda x, function=function: function(x)
    for name, function in binary.items():
        OPERATIONS[name] = lambda x, y, function=function: function(x, y)
    reductions = {
        "reduce_sum": numpy.sum, "reduce_mean": numpy.mean, "reduce_max": numpy.max,
        "reduce_min": numpy.min, "reduce_prod": numpy.prod,
        "reduce_l1_norm": lambda x, **a: numpy.sum(numpy.abs(x), **a),
        "reduce_l2_norm": lambda x, **a: numpy.sqrt(numpy.sum(x * x, **a)),
        "reduce_sum_square": lambda x, **a: numpy.sum(x * x, **a),
        "reduce_log_sum": lambda x, **a: numpy.log(numpy.sum(x, **a)),
        "reduce_log_sum_exp": lambda x, **a: numpy.logaddexp.reduce(x, **a),
    }
    for name, function in reductions.items():
        OPERATIONS[name] = lambda x, axes=None, keep_dims=False, function=function: function(
            x, axis=None if axes is None else tuple(int(a) for a in axes), keepdims=bool(keep_dims))


add_functions()


@operation("reduce_argmax", "reduce_argmin")
def argument(x, op, axis=-1, keep_dims=True, output_dtype=None):
    find = numpy.argmax if op.op_type == "reduce_argmax" else numpy.argmin
    return find(x, axis=int(axis), keepdims=bool(keep_dims))


@operation("cast")
def cast(x, op, dtype):
    if op.outputs[0].dtype.__name__ in ("int32", "uint16", "uint8", "int8", "int16"):
        return numpy.trunc(x)
    return x != 0 if str(dtype) == "bool" else x


@operation("clip")
def clip(x, alpha, beta):
    return numpy.clip(x, alpha, beta)


@operation("leaky_relu")
def leaky_relu(x, alpha=0.01):
    return numpy.where(x < 0, x * alpha, x)


@operation("elu")
def elu(x, alpha=1):
    return numpy.where(x < 0, alpha * numpy.expm1(numpy.minimum(x, 0)), x)


@operation("sigmoid_hard")
def sigmoid_hard(x, alpha=0.2, beta=0.5):
    return numpy.clip(x * alpha + beta, 0, 1)


@operation("thresholded_relu")
def thresholded_relu(x, alpha=1):
    return numpy.where(x >= alpha, x, 0)


@operation("threshold")
def threshold(x, alpha):
    return numpy.maximum(x, alpha)


@operation("linear_activation")
def linear_activation(x, alpha=1, beta=0):
    return x * alpha + beta


@operation("gelu")
def gelu(x, mode="EXACT"):
    if str(mode) == "EXACT":
        return x * 0.5 * (1 + OPERATIONS["erf"](x / math.sqrt(2)))
    return x * 0.5 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


@operation("log")
def log(x, epsilon=1e-45):
    return numpy.log(x + epsilon)


@operation("rsqrt")
def rsqrt(x, epsilon=1e-12):
    return 1 / numpy.sqrt(x + epsilon)


@operation("inverse")
def inverse(x, epsilon=1e-4):
    return 1 / (x + epsilon)


@operation("prelu")
def prelu(x, alpha):
    return numpy.where(x < 0, x * alpha.reshape((-1,) + (1,) * (x.ndim - 2)), x)


@operation("select")
def select(cond, a, b):
    return numpy.where(cond, a, b)


@operation("softmax")
def softmax(x, axis=-1):
    e = numpy.exp(x - x.max(int(axis), keepdims=True))
    return e / e.sum(int(axis), keepdims=True)


@operation("reshape")
def reshape(x, shape):
    return x.reshape([int(n) for n in shape])


@operation("squeeze")
def squeeze(x, axes=None):
    return numpy.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


@operation("expand_dims")
def expand_dims(x, axes):
    return numpy.expand_dims(x, tuple(int(axis) for axis in axes))


@operation("shape")
def shape_of(x):
    return numpy.array(x.shape, numpy.int32)


@operation("fill")
def fill(shape, value=0):
    return numpy.full([int(n) for n in shape], value)


@operation("range_1d")
def range_1d(start, end, step):
    return numpy.arange(start, end, step)


@operation("band_part")
def band_part(x, lower=-1, upper=-1):
    rows, columns = numpy.indices(x.shape[-2:])
    inside = (lower < 0) | (rows - columns <= lower)
    return numpy.where(inside & ((upper < 0) | (columns - rows <= upper)), x, 0)


@operation("transpose")
def transpose(x, perm):
    return x.transpose([int(axis) for axis in perm])


@operation("concat")
def concat(values, axis, interleave=False):
    assert not interleave
    return numpy.concatenate(values, int(axis))


@operation("tile")
def tile(x, reps):
    return numpy.tile(x, [int(n) for n in reps])


@operation("reverse")
def reverse(x, axes=None):
    return numpy.flip(x, None if axes is None else tuple(int(axis) for axis in axes))


@operation("slice_by_index")
def slice_by_index(x, begin, end, stride=None, begin_mask=None, end_mask=None, squeeze_mask=None):
    parts = []
    for i in range(x.ndim):
        step = 1 if stride is None else int(stride[i])
        first, last = int(begin[i]), int(end[i])
        parts.append(slice(None if begin_mask is not None and begin_mask[i] else first,
                           None if end_mask is not None and end_mask[i] else last, step))
    assert squeeze_mask is None or not numpy.any(squeeze_mask)
    return x[tuple(parts)]


@operation("slice_by_size")
def slice_by_size(x, begin, size):
    return x[tuple(slice(int(b), None if n == -1 else int(b) + int(n)) for b, n in zip(begin, size))]


@operation("pad")
def pad(x, pad, mode="constant", constant_val=0):
    widths = numpy.array(pad).reshape(-1, 2).tolist()
    widths = [[0, 0]] * (x.ndim - len(widths)) + widths
    if str(mode) == "constant":
        return numpy.pad(x, widths, constant_values=constant_val)
    return numpy.pad(x, widths, mode={"replicate": "edge", "reflect": "reflect"}[str(mode)])


@operation("batch_norm")
def batch_norm(x, mean, variance, gamma=1, beta=0, epsilon=1e-5):
    def along(v):
        return numpy.asarray(v, numpy.float32).reshape((1, -1) + (1,) * (x.ndim - 2))
    return (x - along(mean)) / numpy.sqrt(along(variance) + epsilon) * along(gamma) + along(beta)


@operation("instance_norm")
def instance_norm(x, gamma=1, beta=0, epsilon=1e-5):
    axes = tuple(range(2, x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + epsilon)
    def along(v):
        return numpy.asarray(v, numpy.float32).reshape((1, -1) + (1,) * (x.ndim - 2))
    return y * along(gamma) + along(beta)


@operation("layer_norm")
def layer_norm(x, axes=None, gamma=None, beta=None, epsilon=1e-5):
    axes = tuple(int(axis) % x.ndim for axis in (range(x.ndim) if axes is None else axes))
    y = (x - x.mean(axes, keepdims=True)) / numpy.sqrt(x.var(axes, keepdims=True) + epsilon)
    shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    if gamma is not None:
        y = y * gamma.reshape(shape)
    return y if beta is None else y + beta.reshape(shape)


@operation("l2_norm")
def l2_norm(x, epsilon=1e-6):
    axes = tuple(range(max(x.ndim - 3, 0), x.ndim))
    return x / numpy.sqrt((x * x).sum(axes, keepdims=True) + epsilon)


@operation("local_response_norm")
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1):
    return by_onnx_runtime("LRN", [x], size=int(size), alpha=float(alpha), beta=float(beta),
                           bias=float(k))[0]


@operation("matmul")
def matmul(x, y, transpose_x=False, transpose_y=False):
    x = numpy.swapaxes(x, -1, -2) if transpose_x else x
    y = numpy.swapaxes(y, -1, -2) if transpose_y else y
    return numpy.matmul(x, y)


@operation("linear")
def linear(x, weight, bias=0):
    return numpy.matmul(x, weight.T) + bias


@operation("einsum")
def einsum(values, equation):
    return numpy.einsum(str(equation), *values)


@operation("scaled_dot_product_attention")
def attention(query, key, value, attn_mask=None):
    scores = query @ numpy.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        scores = numpy.where(attn_mask, scores, -numpy.inf) if attn_mask.dtype == bool else (
            scores + attn_mask)
    return softmax(scores) @ value


def pads_of(pad_type, pad, axes):
    if str(pad_type) == "valid" or pad is None:
        return [0] * (2 * axes)
    assert str(pad_type) == "custom", pad_type
    return [int(n) for n in pad[0::2]] + [int(n) for n in pad[1::2]]


def ints(values, fallback):
    return fallback if values is None else [int(n) for n in values]


@operation("conv")
def conv(x, weight, bias=None, strides=None, pad_type="valid", pad=None, dilations=None, groups=1):
    axes = x.ndim - 2
    return by_onnx_runtime(
        "Conv", [x, weight] + ([] if bias is None else [bias]), strides=ints(strides, [1] * axes),
        dilations=ints(dilations, [1] * axes), pads=pads_of(pad_type, pad, axes), group=int(groups))[0]


@operation("conv_transpose")
def conv_transpose(x, weight, op, bias=None, pad=None, output_shape=None, pad_type="valid",
                   strides=None, dilations=None, groups=1):
    axes = x.ndim - 2
    strides, dilations = ints(strides, [1] * axes), ints(dilations, [1] * axes)
    pads = pads_of(pad_type, pad, axes)
    wanted = op.outputs[0].shape[2:]
    extra = [0 if output_shape is None else wanted[i] - ((x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[axes + i] +
                          (weight.shape[2 + i] - 1) * dilations[i] + 1) for i in range(axes)]
    return by_onnx_runtime(
        "ConvTranspose", [x, weight] + ([] if bias is None else [bias]), strides=strides,
        dilations=dilations, pads=pads, group=int(groups), output_padding=extra)[0]


def pool(kind, x, kernel_sizes, strides, pad_type, pad, ceil_mode, **more):
    axes = x.ndim - 2
    return by_onnx_runtime(kind, [x], kernel_shape=ints(kernel_sizes, None),
                           strides=ints(strides, [1] * axes), pads=pads_of(pad_type, pad, axes),
                           ceil_mode=int(bool(ceil_mode)), **more)[0]


@operation("max_pool")
def max_pool(x, kernel_sizes, strides=None, pad_type="valid", pad=None, ceil_mode=False):
    return pool("MaxPool", x, kernel_sizes, strides, pad_type, pad, ceil_mode)


@operation("avg_pool")
def avg_pool(x, kernel_sizes, strides=None, pad_type="valid", pad=None,
             exclude_padding_from_average=False, ceil_mode=False):
    return pool("AveragePool", x, kernel_sizes, strides, pad_type, pad, ceil_mode,
                count_include_pad=int(not exclude_padding_from_average))


@operation("l2_pool")
def l2_pool(x, kernel_sizes, strides=None, pad_type="valid", pad=None, ceil_mode=False):
    return pool("LpPool", x, kernel_sizes, strides, pad_type, pad, ceil_mode, p=2)


@operation("gather")
def gather(x, indices, axis=0, batch_dims=0, validate_indices=False):
    assert int(batch_dims) == 0
    return numpy.take(x, indices.astype(int), int(axis))


@operation("gather_along_axis")
def gather_along_axis(x, indices, axis=0, validate_indices=False):
    return numpy.take_along_axis(x, indices.astype(int), int(axis))


@operation("gather_nd")
def gather_nd(x, indices, batch_dims=0, validate_indices=False):
    model = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=int(batch_dims))
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(helper.make_model(helper.make_graph(
        [model], "g", [helper.make_tensor_value_info("x", 1, None),
                       helper.make_tensor_value_info("i", 7, None)],
        [helper.make_tensor_value_info("y", 1, None)]))).run(
            None, {"x": x, "i": indices.astype(numpy.int64)})[0]


SCATTER = {"update": lambda old, new: new, "add": numpy.add, "mul": numpy.multiply,
           "max": numpy.maximum, "min": numpy.minimum}


@operation("scatter_nd")
def scatter_nd(data, indices, updates, mode="add", validate_indices=False):
    result = data.copy()
    for at in numpy.ndindex(indices.shape[:-1]):
        to = tuple(int(i) for i in indices[at])
        result[to] = SCATTER[str(mode)](result[to], updates[at])
    return result


@operation("scatter_along_axis")
def scatter_along_axis(data, indices, updates, axis=0, mode="add", validate_indices=False):
    result = data.copy()
    for at in numpy.ndindex(indices.shape):
        to = list(at)
        to[int(axis)] = int(indices[at])
        result[tuple(to)] = SCATTER[str(mode)](result[tuple(to)], updates[at])
    return result


@operation("topk")
def topk(x, k=1, axis=-1, ascending=False, sort=True, return_indices=True,
         output_indices_dtype=None):
    order = numpy.argsort(x if ascending else -x, int(axis), kind="stable")
    order = numpy.take(order, range(int(k)), int(axis))
    values = numpy.take_along_axis(x, order, int(axis))
    return (values, order) if return_indices else (values,)


@operation("argsort")
def argsort(x, axis=-1, ascending=False):
    return numpy.argsort(x if ascending else -x, int(axis), kind="stable")


@operation("cumsum")
def cumsum(x, axis=0, exclusive=False, reverse=False):
    axis = int(axis)
    x = numpy.flip(x, axis) if reverse else x
    y = numpy.cumsum(x, axis, dtype=x.dtype)
    y = y - x if exclusive else y
    return numpy.flip(y, axis) if reverse else y


def blocks(x, b, inside):
    n, c, h, w = x.shape
    if inside:  # space to depth: the block's place comes before the channel
        return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(
            n, c * b * b, h // b, w // b)
    return x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2).reshape(
        n, c // (b * b), h * b, w * b)


@operation("space_to_depth")
def space_to_depth(x, block_size):
    return blocks(x, int(block_size), True)


@operation("depth_to_space")
def depth_to_space(x, block_size):
    return blocks(x, int(block_size), False)


@operation("pixel_shuffle")
def pixel_shuffle(x, upscale_factor):
    n, c, h, w = x.shape
    b = int(upscale_factor)
    return x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(
        n, c // (b * b), h * b, w * b)


@operation("pixel_unshuffle")
def pixel_unshuffle(x, downscale_factor):
    n, c, h, w = x.shape
    b = int(downscale_factor)
    return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 1, 3, 5, 2, 4).reshape(
        n, c * b * b, h // b, w // b)


@operation("resize_bilinear", "resize", "upsample_bilinear", "upsample_nearest_neighbor",
           "resize_nearest_neighbor")
def resize(op, x, **arguments):
    """Both axes by a matrix each, as the documentation of the sampling modes says."""
    wanted = op.outputs[0].shape[-2:]
    mode = str(arguments.get("sampling_mode", "DEFAULT"))
    if op.op_type.startswith("upsample"):
        factors = arguments["scale_factor_height"], arguments["scale_factor_width"]
        wanted = [int(n * factor) for n, factor in zip(x.shape[-2:], factors)]
        if arguments.get("half_pixel_centers"):
            mode = "UNALIGN_CORNERS"
        elif arguments.get("align_corners"):
            mode = "ALIGN_CORNERS"
    nearest = "nearest" in op.op_type or "NEAREST" in str(arguments.get("interpolation_mode", ""))
    for axis, to in zip((x.ndim - 2, x.ndim - 1), wanted):
        x = numpy.moveaxis(numpy.moveaxis(x, axis, -1) @ sampled(x.shape[axis], to, mode, nearest),
                           -1, axis)
    return x


def sampled(size, to, mode, nearest):
    matrix = numpy.zeros((size, to), numpy.float32)
    for i in range(to):
        if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
            at = i * (size - 1) / (to - 1) if to > 1 else 0
        elif mode in ("OFFSET_CORNERS", "UNALIGN_CORNERS"):
            at = (i + 0.5) * size / to - 0.5
        else:
            at = i * size / to
        at = min(max(at, 0), size - 1)
        low = int(math.floor(at + (0.5 if nearest and "CORNERS" in mode else 0)))
        high = min(low + 1, size - 1)
        part = 0 if nearest else at - low
        matrix[min(low, size - 1), i] += 1 - part
        matrix[high, i] += part
    return matrix


@operation("reverse_sequence")
def reverse_sequence(x, lengths, seq_axis=0, batch_axis=0):
    y = x.copy()
    for i, length in enumerate(lengths):
        at = [slice(None)] * x.ndim
        at[int(batch_axis)], at[int(seq_axis)] = i, slice(0, int(length))
        axis = int(seq_axis) - (int(batch_axis) < int(seq_axis))
        y[tuple(at)] = numpy.flip(x[tuple(at)], axis)
    return y


@operation("resample")
def resample(x, coordinates, sampling_mode, padding_mode, padding_value, coordinates_mode, align_corners):
    """Each place by itself, from MIL's description of the modes."""
    assert str(coordinates_mode) == "normalized_minus_one_to_one"
    size = numpy.array(x.shape[:1:-1], float)  # width, height
    at = (coordinates + 1) / 2 * (size - 1) if align_corners else ((coordinates + 1) * size - 1) / 2
    padding = str(padding_mode)

    def pixels(column, row):
        places, inside = [], True
        for i, extent in ((column, x.shape[3]), (row, x.shape[2])):
            inside = inside & (i >= 0) & (i < extent)
            if padding == "reflection":
                i = numpy.abs(i) % max(2 * (extent - 1), 1)
                i = numpy.where(i >= extent, 2 * (extent - 1) - i, i)
            elif padding == "symmetric":
                i = i % (2 * extent)
                i = numpy.where(i >= extent, 2 * extent - 1 - i, i)
            places.append(numpy.clip(i, 0, extent - 1).astype(int))
        batch = numpy.arange(len(x))[:, None, None]
        values = numpy.moveaxis(x, 1, -1)[batch, places[1], places[0]]
        return numpy.where(inside[..., None], values, padding_value) if padding == "constant" else values

    if padding in ("reflection", "symmetric"):  # the places themselves turn back
        low = 0 if padding == "reflection" else -0.5
        span = numpy.maximum(size - 1 if padding == "reflection" else size, 1e-9)
        turned = numpy.abs(at - low) % (2 * span)
        at = low + numpy.where(turned > span, 2 * span - turned, turned)
    if padding != "constant":
        at = numpy.clip(at, 0, size - 1)
    if str(sampling_mode) == "nearest":
        near = numpy.rint(at)
        return numpy.moveaxis(pixels(near[..., 0], near[..., 1]), -1, 1)
    low = numpy.floor(at)
    part = at - low
    result = 0
    for dx in (0, 1):
        for dy in (0, 1):
            share = ((part[..., 0] if dx else 1 - part[..., 0]) * (part[..., 1] if dy else 1 - part[..., 1]))
            result = result + share[..., None] * pixels(low[..., 0] + dx, low[..., 1] + dy)
    return numpy.moveaxis(result, -1, 1)


@operation("lstm")
def lstm(x, initial_h, initial_c, weight_ih, weight_hh, bias, direction, output_sequence, activation,
         recurrent_activation, cell_activation, peephole=None):
    assert (str(direction), bool(output_sequence)) == ("forward", True)
    assert [str(a) for a in (activation, recurrent_activation, cell_activation)] == ["tanh", "sigmoid", "tanh"]
    h, c, steps = initial_h, initial_c, []
    p = numpy.split(numpy.zeros(3 * h.shape[1]) if peephole is None else peephole, 3)
    for given in x:
        i, f, o, z = numpy.split(given @ weight_ih.T + h @ weight_hh.T + bias, 4, 1)
        c = sigmoid(f + p[1] * c) * c + sigmoid(i + p[0] * c) * numpy.tanh(z)
        h = sigmoid(o + p[2] * c) * numpy.tanh(c)
        steps.append(h)
    return numpy.stack(steps), h, c


@operation("rnn")
def rnn(x, initial_h, weight_ih, weight_hh, bias, direction, output_sequence, activation):
    assert (str(direction), bool(output_sequence), str(activation)) == ("forward", True, "tanh")
    h, steps = initial_h, []
    for given in x:
        h = numpy.tanh(given @ weight_ih.T + h @ weight_hh.T + bias)
        steps.append(h)
    return numpy.stack(steps), h


@operation("dequantize")
def dequantize(input, scale, zero_point=0, axis=None):
    return (input.astype(numpy.float32) - zero_point) * scale


@operation("quantize")
def quantize(input, scale, output_dtype, zero_point=0, axis=None):
    low, high = (0, 255) if str(output_dtype) == "uint8" else (-128, 127)
    return numpy.clip(numpy.rint(input / scale) + zero_point, low, high)


NUMPY_TYPES = {"fp16": numpy.float16, "fp32": numpy.float32, "int32": numpy.int32, "bool": numpy.bool_,
               "uint16": numpy.uint16, "uint8": numpy.uint8, "int8": numpy.int8, "int16": numpy.int16}


def nested(operations):
    """The operations, and those of their blocks."""
    for op in operations:
        for block in op.blocks:
            yield from nested(block.operations)
        yield op


class Package:
    """A package that coremltools could open and check. `specification` overrides its version."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.spec = coremltools.utils.load_spec(str(path))
        weights = path / "Data" / "com.apple.CoreML" / "weights"
        self.program = load_program(self.spec, specification_version=self.spec.specificationVersion,
                                    file_weights_dir=str(weights))
        self.function = self.program.functions["main"]

    @property
    def inputs(self):
        return {port.name: list(port.type.multiArrayType.shape) for port in self.spec.description.input}

    def operations(self):
        return [op for op in nested(self.function.operations) if op.op_type != "const"]

    def constants(self):
        """Every weight, read back."""
        for op in nested(self.function.operations):
            if op.op_type == "const":
                yield op.outputs[0].name, op.outputs[0].val
            elif op.op_type.startswith("constexpr_"):
                yield op.outputs[0].name, op.materialized_val_inference()

    def run(self, feeds, states=None):
        """The outputs by name. `states`: by name, and changed as the program writes them."""
        values = {}
        for name, var in self.function.inputs.items():
            if coremltools.converters.mil.mil.types.is_state(var.sym_type):
                values[var] = states
            else:
                values[var] = numpy.asarray(feeds[name]).astype(NUMPY_TYPES[kind(var)])
        with numpy.errstate(all="ignore"):
            for op in self.function.operations:
                self.step(op, values)
        return {var.name: values[var] for var in self.function.outputs}

    @staticmethod
    def step(op, values):
        if op.op_type == "const":
            values[op.outputs[0]] = op.outputs[0].val
            return
        if op.op_type.startswith("constexpr_"):
            values[op.outputs[0]] = op.materialized_val_inference()
            return
        if op.op_type in ("read_state", "coreml_update_state"):
            state = op.input if op.op_type == "read_state" else op.state
            if op.op_type == "coreml_update_state":
                values[state][state.name] = values[op.value]
            values[op.outputs[0]] = numpy.asarray(values[state][state.name]).astype(numpy.float16)
            return
        if op.op_type == "cond":
            block = op.blocks[0 if values[op.pred] else 1]
            for inner in block.operations:
                Package.step(inner, values)
            values.update(zip(op.outputs, (values[result] for result in block.outputs)))
            return
        if op.op_type not in OPERATIONS:
            raise NotImplementedError(f"the interpreter does not have {op.op_type}")

        def read(var):
            if isinstance(var, (list, tuple)):
                return [read(v) for v in var]
            value = values[var]
            is_half = getattr(value, "dtype", None) == numpy.float16
            return numpy.float32(value) if is_half else value

        function = OPERATIONS[op.op_type]
        given = {name: read(var) for name, var in op.inputs.items() if var is not None and (
            isinstance(var, (list, tuple)) or var in values)}
        if "op" in function.__code__.co_varnames[:function.__code__.co_argcount]:
            given["op"] = op
        results = function(**given)
        results = results if isinstance(results, tuple) else (results,)
        for var, result in zip(op.outputs, results):
            result = numpy.asarray(result).astype(NUMPY_TYPES[kind(var)])
            shape = var.shape  # a size that is not known is a symbol
            if len(result.shape) != len(shape) or any(
                    got != want for got, want in zip(result.shape, shape) if not is_symbolic(want)):
                raise AssertionError(f"{op.op_type} '{var.name}': {result.shape}, want {shape}")
            values[var] = result


def kind(var):
    name = coremltools.converters.mil.mil.types.builtin_to_string(var.dtype)
    return name
