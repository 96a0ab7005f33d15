"""MIL operations on images: blocks, resizes, samples and crops."""

import math

import numpy

from mil_registry import operation


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
