"""MIL operations that move elements: shapes, slices, pads, gathers and scatters."""

import numpy
from onnx import helper

from mil_registry import operation


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
