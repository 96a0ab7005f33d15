"""MIL norms, products, convolutions and pools."""

import math

import numpy

from mil_elementwise import softmax
from mil_registry import by_onnx_runtime, operation


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
