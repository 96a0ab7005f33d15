"""Every runnable golden vector through the software engine in exact mode, on its target.

Usage: golden_test.py GOLDEN_PROGRAM. A probe-* vector is asked once for each option of its rule that
has an answer, with that option set. Prints, by rule, how many were answered as they say; how many
are published values that the defaults do not meet, which must go on failing; and how many are no
operation of the engine, with where they are tested instead.
"""

import collections
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

VECTORS = json.loads((pathlib.Path(__file__).parent / "golden_vectors.json").read_text())["vectors"]

# Rules whose vectors are storage formats and the arithmetic of encoders on the host.
ENCODINGS = {"cmp-accuracy", "cmp-block", "cmp-encode", "cmp-int8", "cmp-palette", "cmp-sparse",
             "cmp-stream", "sat-int", "st-fp8-e4m3", "st-fp8-e5m2"}

# No number of theirs goes through the engine.
NOT_OPERATIONS = {
    "core-map": "says which core computes a channel, which changes no value (mac-ocg)",
    "control-ulp": "the spacing of fp16 numbers, a definition; its consequences are the f16-* vectors",
}

# Published values that the defaults do not give, and why.
NOT_MET = {
    "sqrt-eps-4": "the table of roots is coarse near 0 and its knots are not published (ew-sqrt)",
    "floordiv-legacy": "a division and a Floor are two units here, so that the product is rounded "
                       "between them; the two oldest families do not (ew-floordiv)",
    "floor-sat-range": "the vector is wrong: 2047.5 is no fp16 number, the port has 2048",
}

# Options that show what they say only beside another rule's.
BESIDE = {
    ("probe-product", "wide"): {"mac-tile": "none"},  # align12 rounds the product on its own
    ("probe-interior-cross", "per-pass"): {"mac-tile": "none"},  # align12 rounds 90000 + 30000
}


def bits_of(value):
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0xfc00 if value < 0 else 0x7c00


def value_of(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def f16(x):
    return value_of(bits_of(x))


NAMES = {"inf": math.inf, "nan": math.nan, "f16": f16, "f16bits": value_of, "abs": abs, "len": len,
         "range": range, "math": math, "all": all, "any": any, "bits": bits_of, "bool": bool}


def ones(*shape):
    return 1.0 if not shape else [ones(*shape[1:]) for _ in range(shape[0])]


def flat(values):
    if isinstance(values, (list, tuple, range)):
        return [x for value in values for x in flat(value)]
    return [float(values)]


def evaluated(vector):
    inputs = {}
    for name, text in vector["inputs"].items():
        inputs[name] = eval(text, {**NAMES, "ones": ones}, dict(inputs))
    return inputs


class Call:
    def __init__(self, op, **attrs):
        self.line = {"op": op, "attrs": attrs, "inputs": [], "values": []}

    def add(self, name, shape, values, role="input", dtype="fp16"):
        values = flat(values)
        assert len(values) == math.prod(shape), (name, shape, len(values))
        if dtype == "fp16":
            values = [bits_of(v) for v in values]
        elif dtype == "uint8":
            values = [int(v) for v in values]
        return self.append(name, shape, values, role, dtype)

    def append(self, name, shape, values, role="input", dtype="fp16"):
        self.line["inputs"].append({"name": name, "shape": list(shape), "dtype": dtype,
                                    "role": role})
        self.line["values"].append(values)
        return self

    def const(self, name, shape, values):
        return self.add(name, shape, values, "const")

    def after(self, call, shape):
        """An input that is the output of an earlier call."""
        return self.append(f"%{call}", shape, [])


def row(values):
    return [1, 1, 1, len(flat(values))]


def unary(op, x, **attrs):
    return [Call(op, **attrs).add("x", row(x), x)]


def binary(op, x, y, constant=False):
    return [Call(op).add("x", row(x), x).add("y", row(y), y, "const" if constant else "input")]


def reduction(op, x):
    return [Call(op, axes=[-1], keep_dims=True).add("x", row(x), x)]


def matmul(a, b):
    a, b = flat(a), flat(b)
    return [Call("matmul", transpose_x=False, transpose_y=False).add("x", [1, 1, 1, len(a)], a)
            .add("y", [1, 1, len(b), 1], b)]


def linear(inputs):
    call = Call("linear").add("x", [1, len(flat(inputs["a"]))], inputs["a"])
    call.const("weight", [1, len(flat(inputs["b"]))], inputs["b"])
    if "bias" in inputs:
        call.const("bias", [1], inputs["bias"])
    return [call]


def conv(attrs, inputs, weights=None):
    cin, cout = attrs.get("cin", 1), attrs.get("cout", 1)
    x = flat(inputs["x"])
    call = Call("conv", strides=[1, 1], pad_type="valid", groups=1)
    call.add("x", [1, cin, 1, len(x) // cin], x)
    call.const("weight", [cout, cin, *attrs.get("kernel", [1, 1])],
               flat(inputs["w"]) if weights is None else weights)
    if "bias" in inputs:
        call.const("bias", [cout], inputs["bias"])
    return [call]


def conv_then_relu(attrs, inputs):
    calls = conv(attrs, inputs)
    return calls + [Call("relu").after(0, row(inputs["x"]))]


def conv_transpose(attrs, inputs):
    x = flat(inputs["x"])
    return [Call("conv_transpose", strides=attrs["stride"], pad_type="valid", groups=1)
            .add("x", [1, 1, 1, len(x)], x).const("weight", [1, 1, *attrs["kernel"]], inputs["w"])]


def int8_conv(attrs, inputs, option):
    """A weight is rounded (premul), or the sum of the integers is scaled behind it (postscale)."""
    scale, zero = flat(inputs["s"])[0], flat(inputs["z"])[0]
    integers = [q - zero for q in flat(inputs["q"])]
    if option == "premul":
        return conv(attrs, inputs, [f16(scale * q) for q in integers])
    return conv(attrs, inputs, integers) + [
        Call("mul").after(0, [1, 1, 1, 1]).const("y", [1, 1, 1, 1], [scale])]


def slice_call(attrs, inputs):
    x = flat(inputs["x"])
    axis = "NCHW".index(attrs["axis"])
    shape, begin, size = [1] * 4, [0] * 4, [1] * 4
    shape[axis], begin[axis] = len(x), attrs["begin"]
    return [Call("slice_by_size", begin=begin, size=size).add("x", shape, x)]


def layer_norm(inputs, x):
    n = len(x)
    return [Call("layer_norm", axes=[-1], epsilon=float(inputs.get("eps", 0)))
            .add("x", [1, 1, 1, n], x).const("gamma", [n], inputs.get("gamma", [1.0] * n))
            .const("beta", [n], inputs.get("beta", [0.0] * n))]


def rms_norm(inputs, x):
    """As a lowering writes it: sums for means (kernels/rms_normalization.cc)."""
    n = len(x)
    return [Call("L2Normalization", Dimension=["Width"],
                 Epsilon=bits_of(n * float(inputs.get("eps", 0)))).add("x", row(x), x),
            Call("GOC", ScaleScalar=bits_of(math.sqrt(n)), BiasScalar=0).after(0, row(x))]


def pool(op, attrs, x):
    """The one window in a corner of a larger input: the whole would become a Reduction."""
    height, width = attrs["kernel"]
    rows = [flat(x)[i * width:(i + 1) * width] + [0.0] for i in range(height)]
    more = {"exclude_padding_from_average": True} if op == "avg_pool" else {}
    return [Call(op, kernel_sizes=[height, width], strides=[2, 2], pad_type="valid", **more)
            .add("x", [1, 1, height + 1, width + 1], rows + [[0.0] * (width + 1)])]


def batch_norm(inputs, x):
    call = Call("batch_norm", epsilon=float(inputs["eps"])).add("x", row(x), x)
    for name, key in (("mean", "mean"), ("variance", "var"), ("gamma", "gamma"), ("beta", "beta")):
        call.const(name, [1], [inputs[key]])
    return [call]


def scaled_elementwise(attrs, inputs):
    x, z = flat(inputs["x"]), flat(inputs["z"])
    return [Call("ScaledElementWise", Type=attrs["Type"], Scale=bits_of(float(inputs["scale"])))
            .add("x", row(x), x).add("z", row(z), z)]


def position(index):
    """Where the largest of 2050 elements stands, which an axis of 2048 could not tell."""
    x = [0.0] * 2050
    x[int(index)] = 1.0
    return [Call("GlobalArgMinMax", Type="Max", Dimension="Width").add("x", row(x), x)]


def plain_log_sum_exp(x):
    return unary("exp", x) + [
        Call("reduce_sum", axes=[-1], keep_dims=True).after(0, row(x)),
        Call("log", epsilon=0.0).after(1, [1, 1, 1, 1])]


def through_port(x):
    """Numbers of the host, in fp32, through a port and a copy."""
    return [Call("transpose", perm=[0, 1, 3, 2]).add("x", row(x), x, dtype="fp32")]


UNARY = {"relu": {}, "sigmoid": {}, "tanh": {}, "erf": {}, "exp": {}, "sqrt": {}, "softplus": {},
         "softsign": {}, "square": {}, "atan": {}, "round": {}, "floor": {}, "silu": {},
         "gelu": {"mode": "EXACT"}, "rsqrt": {"epsilon": 0.0}, "log": {"epsilon": 0.0},
         "inverse": {"epsilon": 0.0}}
BINARY = {"add", "sub", "mul", "maximum", "minimum", "equal", "real_div", "floor_div", "pow"}
REDUCTIONS = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_l1_norm", "reduce_log_sum_exp"}

# By operation, what is run: of attributes, inputs, and the input x as a flat list.
FORMS = {
    **{op: lambda a, i, x, op=op, k=k: unary(op, x, **k) for op, k in UNARY.items()},
    **{op: lambda a, i, x, op=op: binary(op, x, i["y"], a.get("divisor") == "constant")
       for op in BINARY},
    **{op: lambda a, i, x, op=op: reduction(op, x) for op in REDUCTIONS},
    **{op: lambda a, i, x, op=op: pool(op, a, x) for op in ("avg_pool", "max_pool", "l2_pool")},
    "sin": lambda a, i, x: trigonometry("Sin", x),
    "cos": lambda a, i, x: trigonometry("Cos", x),
    "reduce_argmax": lambda a, i, x: [Call("reduce_argmax", axis=-1, keep_dims=True)
                                      .add("x", row(x), x)],
    "matmul": lambda a, i, x: matmul(i["a"], i["b"]),
    "linear": lambda a, i, x: linear(i),
    "conv": lambda a, i, x: conv(a, i),
    "conv then relu": lambda a, i, x: conv_then_relu(a, i),
    "conv_transpose": lambda a, i, x: conv_transpose(a, i),
    "slice_by_size": lambda a, i, x: slice_call(a, i),
    "softmax": lambda a, i, x: unary("softmax", x, axis=-1),
    "layer_norm": lambda a, i, x: layer_norm(i, x),
    "instance_norm": lambda a, i, x: unary("instance_norm", x, epsilon=float(i["eps"])),
    "l2_norm": lambda a, i, x: unary("l2_norm", x, axes=[-1], epsilon=float(i["eps"])),
    "rms_norm": lambda a, i, x: rms_norm(i, x),
    "batch_norm": lambda a, i, x: batch_norm(i, x),
    "MinMaxNormalization": lambda a, i, x: unary("MinMaxNormalization", x, Dimension="Width",
                                                 Epsilon=bits_of(float(i["eps"]))),
    "ScaledElementWise": lambda a, i, x: scaled_elementwise(a, i),
    "transpose": lambda a, i, x: unary("transpose", x, perm=[0, 1, 3, 2]),
    "cumsum": lambda a, i, x: unary("cumsum", x, axis=-1),
    "16 * x": lambda a, i, x: binary("mul", x, [16.0] * len(x)),
    "f16": lambda a, i, x: through_port(x),
    "reduce or matmul result": lambda a, i, x: matmul([2048.0, flat(i["exact"])[0] - 2048.0],
                                                      [1.0, 1.0]),
    "reduce_sum then square": lambda a, i, x: reduction("reduce_sum", x) + [
        Call("square").after(0, [1, 1, 1, 1])],
    "uint8 image dequantization": lambda a, i, x: [
        Call("GOC", ScaleScalar=bits_of(i["scale"]), BiasScalar=bits_of(i["bias"]))
        .add("x", row(i["q"]), i["q"], dtype="uint8")],
    # The scale is 1 if it is the bits of 1, and about 0 if it is a number.
    "netplist fp16 parameter": lambda a, i, x: [
        Call("GOC", ScaleScalar=15360, BiasScalar=0).add("x", [1, 1, 1, 1], [15360.0])],
    "host exact sum": lambda a, i, x: reduction("reduce_sum", x),
    "host fp16 running sum": lambda a, i, x: reduction("reduce_sum", x),
}

# Controls of the host are what another option of the engine's own would give.
OPTIONS = {"host exact sum": {"mac-tile": "none"}, "host fp16 running sum": {"red-sum": "narrow"}}

# Options that are another choice of units, or of the unit asked.
COMPOSED = {
    ("probe-logsumexp", "plain"): lambda a, i: (plain_log_sum_exp(flat(i["x"])), {}),
    # Its last element is that of a running sum.
    ("probe-cumsum", "running"): lambda a, i: (reduction("reduce_sum", i["x"]),
                                               {"red-sum": "narrow"}),
    ("probe-int8-scale", "premul"): lambda a, i: (int8_conv(a, i, "premul"), {}),
    ("probe-int8-scale", "postscale"): lambda a, i: (int8_conv(a, i, "postscale"), {}),
}


def trigonometry(op, x):
    """By ONNX: two families have no such unit, and a polynomial instead (fam-trig)."""
    shape = f"float[1,1,1,{len(x)}]"
    return {"onnx": f"({shape} x) => ({shape} y) {{ y = {op}(x) }}",
            "values": [[bits_of(v) for v in x]]}


def calls_of(vector):
    inputs = evaluated(vector)
    x = flat(inputs["x"]) if "x" in inputs else []
    return FORMS[vector["op"]](vector.get("attrs", {}), inputs, x)


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, calls, target, options, key="bits"):
        """The bits of the output; an AssertionError that tells why there is none."""
        work = calls if isinstance(calls, dict) else {"calls": [call.line for call in calls]}
        told = []
        for route in ("mil", "netplist"):
            line = {"target": target.lower(), "route": route, "options": options, **work}
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            if key in answer:
                return answer[key]
            told.append(f"{route}: {answer}")
        raise AssertionError("; ".join(told))

    def run(self, calls, target, options=None):
        """The same for a row of more elements than an axis may have, piece by piece."""
        widest = 16384
        if isinstance(calls, dict) or len(calls) != 1 or len(calls[0].line["inputs"]) != 1 or \
                calls[0].line["inputs"][0]["shape"][-1] <= widest:
            return self.ask(calls, target, options or {})
        line, bits = calls[0].line, []
        for first in range(0, len(line["values"][0]), widest):
            part = line["values"][0][first:first + widest]
            call = Call(line["op"], **line["attrs"]).append("x", [1, 1, 1, len(part)], part)
            bits += self.ask([call], target, options or {})
        return bits


def number(value):
    if isinstance(value, str) and value.startswith("0x"):
        return value_of(int(value, 16))
    return float(value) if isinstance(value, str) else value


def agrees(want, got, tolerance=0.0):
    want = [number(v) for v in (want if isinstance(want, list) else [want])]
    want = want * len(got) if len(want) == 1 else want
    return len(want) == len(got) and all(
        w == g or (math.isfinite(g) and abs(w - g) <= tolerance) for w, g in zip(want, got))


EXACT_FUNCTIONS = {
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0, "tanh": math.tanh,
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)), "sin": math.sin, "cos": math.cos,
    "atan": math.atan}


def check(vector, bits):
    compare, got = vector["compare"], [value_of(b) for b in bits]
    if compare["kind"] == "bits":
        want = vector["expect_bits"]
        return [int(w, 16) for w in (want if isinstance(want, list) else [want])] == bits
    if compare["kind"] == "value":
        return agrees(vector["expect"], got)
    if compare["kind"] == "abs":
        return agrees(vector["expect"], got, compare["tol"])
    if compare["kind"] == "ulp":
        want = vector["expect"] if isinstance(vector["expect"], list) else [vector["expect"]]
        return all(abs(bits_of(w) - b) <= compare["n"] for w, b in zip(want, bits))
    if compare["kind"] == "property":
        y = got[0] if len(got) == 1 else got
        return bool(eval(compare["expr"], {**NAMES, **evaluated(vector), "y": y}))
    if compare["kind"] == "first_input":
        x = flat(evaluated(vector)["x"])
        first = next(v for v, y in zip(x, got) if math.isinf(y))
        return abs(first - number(vector["expect"])) <= compare["tol"]
    assert compare["kind"] == "max_abs_error", compare
    x = [f16(v) for v in flat(evaluated(vector)["x"])]
    worst = max(abs(EXACT_FUNCTIONS[vector["op"]](v) - y) for v, y in zip(x, got))
    return worst <= vector["expect"]


def some(count, scale=1.0, seed=1):
    uniform = random.Random(seed).uniform
    return [f16(uniform(-scale, scale)) for _ in range(count)]


def cosine(x, y):
    norm = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    return sum(a * b for a, b in zip(x, y)) / norm


def check_two(program, vector, build):
    """One form on two inputs, x1 and x2."""
    inputs = evaluated(vector)
    y = {}
    for name in ("1", "2"):
        bits = program.run(build(inputs, flat(inputs["x" + name])), vector["target"])
        y["y" + name] = [value_of(b) for b in bits]
    flat_bits = {"bits": lambda values: [bits_of(v) for v in values]}
    return bool(eval(vector["compare"]["expr"], {**NAMES, **flat_bits, **y}))


def check_nan_rms(program, vector):
    return check_two(program, vector, rms_norm)


def check_nan_layer_norm(program, vector):
    return check_two(program, vector, layer_norm)


def check_argmax_indices(program, vector):
    indices = flat(evaluated(vector)["index"])
    got = [value_of(program.run(position(i), vector["target"])[0]) for i in indices]
    return agrees(vector["expect"], got)


def check_resident(program, vector):
    """The output bound to the input: each dispatch reads the bits of the last."""
    inputs, got = evaluated(vector), []
    state = flat(inputs["state"])
    for _ in range(vector["attrs"]["dispatches"]):
        state = [value_of(b) for b in program.run(binary("add", state, inputs["y"]),
                                                  vector["target"])]
        got += state
    return agrees(vector["expect"], got)


def check_decoded(program, vector):
    """The number that the host reads for these bits."""
    bits = int(vector["inputs"]["bits"], 16)
    floats = program.ask(through_port([value_of(bits)]), vector["target"], {}, "floats")
    return agrees(vector["expect"], floats)


def check_matmul_reduce(program, vector):
    """Of products that fp16 holds: multiply rounds them, the array does not."""
    a = [float(random.Random(i).randint(-31, 31)) for i in range(1000)]
    b = [float(random.Random(-i - 1).randint(-31, 31)) / 32 for i in range(1000)]
    target = vector["target"]
    product = binary("mul", a, b) + [
        Call("reduce_sum", axes=[-1], keep_dims=True).after(0, row(a))]
    return program.run(matmul(a, b), target) == program.run(product, target)


def check_attention(program, vector):
    tokens, dim = 16, 32
    q, k, v = (some(tokens * dim, seed=i) for i in range(3))
    shape = [1, 1, tokens, dim]
    fused = [Call("scaled_dot_product_attention")
             .add("query", shape, q).add("key", shape, k).add("value", shape, v)]
    scores = [1, 1, tokens, tokens]
    steps = [Call("matmul", transpose_x=False, transpose_y=True).add("x", shape, q)
             .add("y", shape, k),
             Call("mul").after(0, scores).const("y", [1, 1, 1, 1], [dim ** -0.5]),
             Call("softmax", axis=-1).after(1, scores),
             Call("matmul", transpose_x=False, transpose_y=False).after(2, scores)
             .add("v", shape, v)]
    got = [[value_of(b) for b in program.run(calls, "H14")] for calls in (fused, steps)]
    return cosine(*got) >= vector["compare"]["min"]


def check_cross_chip(program, vector):
    """One ulp at most between the two families' units, of random numbers."""
    x, y = some(512, 8.0), some(512, 8.0, seed=2)
    for calls in (binary("add", x, y), binary("mul", x, y), binary("real_div", x, y),
                  unary("sigmoid", x), unary("exp", x), reduction("reduce_sum", x), matmul(x, y)):
        first, second = (program.run(calls, target) for target in ("H13", "H17s"))
        if any(abs(a - b) > vector["compare"]["n"] for a, b in zip(first, second)):
            return False
    return True


def check_three(program, vector):
    """(a + b) + c, or a + (b + c), as the vector says."""
    a, b, c = (flat(evaluated(vector)[name]) for name in "abc")
    last = Call("add")
    if vector["attrs"]["graph"] == "(a+b)+c":
        calls = binary("add", a, b) + [last.after(0, row(a)).add("c", row(c), c)]
    else:
        calls = binary("add", b, c) + [last.add("a", row(a), a).after(0, row(a))]
    return check(vector, program.run(calls, vector["target"]))


# Vectors that compare several runs.
SEVERAL = {
    "nan-rms": check_nan_rms,
    "nan-layernorm": check_nan_layer_norm,
    "index-2048": check_argmax_indices,
    "index-2049": check_argmax_indices,
    "resident-acc": check_resident,
    "add-order-a": check_three,
    "add-order-b": check_three,
    "det-matmul-reduce": check_matmul_reduce,
    "attention-rewrite-cosine": check_attention,
    "cross-chip-ulp": check_cross_chip,
}


def answer_probe(program, vector, option):
    """The element that the option's answer is of."""
    inputs, attrs = evaluated(vector), vector.get("attrs", {})
    composed = COMPOSED.get((vector["id"], option))
    if composed:
        calls, options = composed(attrs, inputs)
    else:
        calls = calls_of(vector)
        options = {vector["rule"]: option, **BESIDE.get((vector["id"], option), {})}
    return value_of(program.run(calls, vector["target"], options)[-1])


def check_vector(program, vector):
    """What fails, as lines of text."""
    target = "H13" if vector["target"] == "unknown" else vector["target"]
    try:
        if vector["id"] in SEVERAL:
            return [] if SEVERAL[vector["id"]](program, vector) else ["does not hold"]
        if vector["op"] == "decode fp16":
            return [] if check_decoded(program, vector) else ["another number"]
        if vector["compare"]["kind"] == "probe":
            lines = []
            for option, want in vector["answers"].items():
                got = answer_probe(program, vector, option)
                if not agrees(want, [got], vector["compare"].get("tol", 0.0)):
                    lines.append(f"{option}: want {want}, got {got}")
            return lines
        bits = program.run(calls_of(vector), target, OPTIONS.get(vector["op"]))
        if check(vector, bits):
            return []
        return [f"want {vector.get('expect')}, got {[value_of(b) for b in bits[:4]]}"]
    except AssertionError as error:
        return [str(error)]


def place_of(vector):
    if vector["id"] in NOT_OPERATIONS:
        return NOT_OPERATIONS[vector["id"]]
    if vector["rule"] in ENCODINGS and vector["id"] != "probe-int8-scale":
        return "an encoding: tested by encodings_test"
    return None


def main():
    program = Program(sys.argv[1])
    counts = collections.defaultdict(collections.Counter)
    elsewhere, not_met, failures = collections.Counter(), [], []
    for vector in VECTORS:
        if not vector.get("runnable"):
            continue
        place = place_of(vector)
        if place:
            counts[vector["rule"]]["elsewhere"] += 1
            elsewhere[place] += 1
            continue
        wrong = check_vector(program, vector)
        if vector["id"] in NOT_MET:
            counts[vector["rule"]]["not met"] += 1
            not_met.append((vector["id"], NOT_MET[vector["id"]]))
            if not wrong:
                failures.append((vector["id"], "is met now: take it off NOT_MET"))
            continue
        counts[vector["rule"]]["failed" if wrong else "passed"] += 1
        failures += [(vector["id"], vector["target"], line) for line in wrong]
    width = max(map(len, counts))
    columns = ("passed", "not met", "elsewhere", "failed")
    for rule, of_rule in sorted(counts.items()):
        print(f"{rule:{width}}  " + "  ".join(f"{of_rule[c]:3} {c}" for c in columns))
    for vector, why in not_met:
        print("not met:", vector, "-", why)
    for place, count in sorted(elsewhere.items()):
        print("elsewhere:", count, "-", place)
    for (vector, option), options in BESIDE.items():
        print("asked beside", options, ":", vector, option)
    for line in failures:
        print("FAILED:", *line)
    total = sum((c for c in counts.values()), collections.Counter())
    print(", ".join(f"{total[c]} {c}" for c in columns))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
