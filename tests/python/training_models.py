"""Small models to train, with seeded weights and data."""
from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper


def model_of(text: str, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model of ONNX's text form, with initializers."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> net {text}')
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()
    )
    return model


class Random:
    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def weight(self, *dims: int, fan_in: int | None = None) -> np.ndarray:
        scale = 1 / np.sqrt(fan_in or dims[0])
        return (self.generator.standard_normal(dims) * scale).astype(np.float32)


def zeros(*dims: int) -> np.ndarray:
    return np.zeros(dims, np.float32)


def ones(*dims: int) -> np.ndarray:
    return np.ones(dims, np.float32)


def shape(*sizes: int) -> np.ndarray:
    return np.array(sizes, np.int64)


def digits(count: int = 512, size: int = 8, seed: int = 5) -> dict[str, np.ndarray]:
    """Ten random patterns, moved and noisy: float32 N x 1 x size x size, and their numbers."""
    random = np.random.default_rng(seed)
    patterns = random.uniform(0, 1, (10, size, size)) > 0.6
    labels = random.integers(0, 10, count)
    images = patterns[labels].astype(np.float32)
    moves = random.integers(-1, 2, (count, 2))
    images = np.stack([np.roll(image, tuple(move), (0, 1)) for image, move in zip(images, moves)])
    images += random.normal(0, 0.15, images.shape)
    return {"x": images[:, None].astype(np.float32), "labels": labels.astype(np.int64)}


def layered(batch: int = 32, seed: int = 1, width: int = 32) -> onnx.ModelProto:
    """Two linear layers."""
    random = Random(seed)
    return model_of(
        f"(float[{batch},1,8,8] x) => (float[{batch},10] logits) {{ f = Flatten(x) "
        "h = Gemm(f, w1, b1) r = Relu(h) logits = Gemm<transB = 1>(r, w2, b2) }",
        {"w1": random.weight(64, width), "b1": zeros(width),
         "w2": random.weight(10, width, fan_in=width), "b2": zeros(10)},
    )


def convolutional(batch: int = 32, seed: int = 2) -> onnx.ModelProto:
    """Two convolutions with normalization and pools, and a linear layer."""
    random = Random(seed)
    return model_of(
        f"(float[{batch},1,8,8] x) => (float[{batch},10] logits) {{ "
        "c = Conv<pads = [1,1,1,1]>(x, w1, b1) n = GroupNormalization<num_groups = 2>(c, s1, o1) "
        "r = Relu(n) p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r) "
        "d = Conv<pads = [1,1,1,1]>(p, w2, b2) m = GroupNormalization<num_groups = 2>(d, s2, o2) "
        "q = Relu(m) a = GlobalAveragePool(q) f = Flatten(a) logits = Gemm(f, w3, b3) }",
        {"w1": random.weight(8, 1, 3, 3, fan_in=9), "b1": zeros(8), "s1": ones(8), "o1": zeros(8),
         "w2": random.weight(16, 8, 3, 3, fan_in=72), "b2": zeros(16), "s2": ones(16),
         "o2": zeros(16), "w3": random.weight(16, 10), "b3": zeros(10)},
    )


BLOCK = """
  n1{i} = LayerNormalization(h{i}, s1{i}, o1{i})
  q{i} = MatMul(n1{i}, wq{i}) k{i} = MatMul(n1{i}, wk{i}) v{i} = MatMul(n1{i}, wv{i})
  q4{i} = Reshape(q{i}, heads) k4{i} = Reshape(k{i}, heads) v4{i} = Reshape(v{i}, heads)
  qh{i} = Transpose<perm = [0,2,1,3]>(q4{i}) kh{i} = Transpose<perm = [0,2,3,1]>(k4{i})
  vh{i} = Transpose<perm = [0,2,1,3]>(v4{i})
  a{i} = MatMul(qh{i}, kh{i}) as{i} = Mul(a{i}, scale) am{i} = Add(as{i}, mask)
  p{i} = Softmax(am{i}) c{i} = MatMul(p{i}, vh{i})
  ct{i} = Transpose<perm = [0,2,1,3]>(c{i}) cr{i} = Reshape(ct{i}, joined)
  o{i} = MatMul(cr{i}, wo{i}) g{i} = Add(h{i}, o{i})
  n2{i} = LayerNormalization(g{i}, s2{i}, o2{i})
  u{i} = MatMul(n2{i}, wu{i}) ub{i} = Add(u{i}, bu{i}) e{i} = Gelu(ub{i})
  d{i} = MatMul(e{i}, wd{i}) db{i} = Add(d{i}, bd{i}) h{next} = Add(g{i}, db{i})
"""


def block_weights(random: Random, i: int, width: int) -> dict[str, np.ndarray]:
    weights = {f"w{name}{i}": random.weight(width, width) for name in "qkvo"}
    return {**weights, f"wu{i}": random.weight(width, 4 * width), f"bu{i}": zeros(4 * width),
            f"wd{i}": random.weight(4 * width, width), f"bd{i}": zeros(width),
            f"s1{i}": ones(width), f"o1{i}": zeros(width),
            f"s2{i}": ones(width), f"o2{i}": zeros(width)}


def attention_constants(batch: int, length: int, width: int, count: int) -> dict[str, np.ndarray]:
    mask = np.triu(np.full((length, length), -30000, np.float32), 1)
    return {"heads": shape(batch, length, count, width // count),
            "joined": shape(batch, length, width),
            "scale": np.array(1 / np.sqrt(width // count), np.float32), "mask": mask}


def transformer(batch: int = 4, length: int = 16, width: int = 32, seed: int = 3) -> onnx.ModelProto:
    """One block, trained to a target of the input's sizes."""
    random = Random(seed)
    sizes = f"float[{batch},{length},{width}]"
    return model_of(
        f"({sizes} x) => ({sizes} y) {{ h0 = Identity(x) {BLOCK.format(i=0, next=1)} "
        "y = LayerNormalization(h1, s, o) }",
        {**attention_constants(batch, length, width, 2), **block_weights(random, 0, width),
         "s": ones(width), "o": zeros(width)},
    )


def sequences(count: int = 64, length: int = 16, width: int = 32, seed: int = 6):
    """Vectors, and each one's mean with those before it."""
    x = np.random.default_rng(seed).standard_normal((count, length, width)).astype(np.float32)
    target = np.cumsum(x, axis=1) / np.arange(1, length + 1)[:, None]
    return {"x": x, "target": (2 * target).astype(np.float32)}


def gated(batch: int = 16, width: int = 24, seed: int = 4) -> onnx.ModelProto:
    """A gated linear unit with RMS normalization: silu(x A) * (x B) C."""
    random = Random(seed)
    return model_of(
        f"(float[{batch},{width}] x) => (float[{batch},{width}] y) {{ q = Mul(x, x) "
        "m = ReduceMean(q, axis) v = Add(m, epsilon) r = Sqrt(v) n = Div(x, r) z = Mul(n, s) "
        "a = MatMul(z, wa) g = Sigmoid(a) t = Mul(a, g) b = MatMul(z, wb) u = Mul(t, b) "
        "y = MatMul(u, wc) }",
        {"axis": shape(-1), "epsilon": np.array(1e-5, np.float32), "s": ones(width),
         "wa": random.weight(width, 48), "wb": random.weight(width, 48),
         "wc": random.weight(48, width)},
    )


def vectors(count: int = 256, width: int = 24, seed: int = 7):
    random = np.random.default_rng(seed)
    x = random.standard_normal((count, width)).astype(np.float32)
    return {"x": x, "target": (np.tanh(x @ random.standard_normal((width, width)) / 3)
                               * np.abs(x)).astype(np.float32)}


def language(batch: int = 4, length: int = 16, width: int = 32, vocabulary: int = 64,
             layers: int = 2, seed: int = 8) -> onnx.ModelProto:
    """A causal transformer on tokens."""
    random = Random(seed)
    weights = {"table": random.weight(vocabulary, width, fan_in=width),
               "places": 0.1 * random.weight(length, width, fan_in=1),
               "s": ones(width), "o": zeros(width), "head": random.weight(width, vocabulary)}
    text = "e = Gather(table, tokens) h0 = Add(e, places)"
    for i in range(layers):
        text += BLOCK.format(i=i, next=i + 1)
        weights.update(block_weights(random, i, width))
    return model_of(
        f"(int64[{batch},{length}] tokens) => (float[{batch},{length},{vocabulary}] logits) {{ "
        f"{text} f = LayerNormalization(h{layers}, s, o) logits = MatMul(f, head) }}",
        {**attention_constants(batch, length, width, 2), **weights},
    )


def tokens(count: int = 64, length: int = 16, vocabulary: int = 64, seed: int = 9):
    """A random walk through a fixed table of two followers for each token."""
    random = np.random.default_rng(seed)
    followers = random.integers(0, vocabulary, (vocabulary, 2))
    walk = np.zeros((count, length + 1), np.int64)
    walk[:, 0] = random.integers(0, vocabulary, count)
    for t in range(length):
        walk[:, t + 1] = followers[walk[:, t], random.integers(0, 2, count)]
    return {"tokens": walk[:, :-1], "labels": walk[:, 1:]}
