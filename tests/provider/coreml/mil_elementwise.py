"""MIL operations on elements, reductions, recurrences and scales."""

import math

import numpy

from mil_registry import OPERATIONS, operation


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
