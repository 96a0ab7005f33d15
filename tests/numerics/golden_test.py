"""Runs every runnable golden vector on the software engine in exact mode, on the vector's target.

Usage: golden_test.py [EMULATOR...] GOLDEN_PROGRAM. A probe-* vector is run once for each option of
its rule that has an answer, with that option set. Prints for each rule how many vectors pass; how
many have published values that the defaults do not give, which must continue to fail; and how many
are not operations of the engine, with the place where they are tested instead.
"""

import collections
import json
import math
import pathlib
import random
import sys

from engine_calls import (Call, Program, batch_norm, binary, bits_of, conv, conv_then_relu,
                          conv_transpose, f16, flat, int8_conv, layer_norm, linear, matmul,
                          plain_log_sum_exp, pool, position, reduction, rms_norm, row,
                          scaled_elementwise, slice_call, some, through_port, unary, value_of)
from expressions import value_of_text

VECTORS = json.loads((pathlib.Path(__file__).parent / "golden_vectors.json").read_text())["vectors"]

# Rules whose vectors test storage formats and encoders on the host.
ENCODINGS = {"cmp-accuracy", "cmp-block", "cmp-encode", "cmp-int8", "cmp-palette", "cmp-sparse",
             "cmp-stream", "sat-int", "st-fp8-e4m3", "st-fp8-e5m2"}

# Vectors that do not test an operation of the engine.
NOT_OPERATIONS = {
    "core-map": "says which core computes a channel, which changes no value (mac-ocg)",
    "control-ulp": "the spacing of fp16 numbers, a definition; its consequences are the f16-* vectors",
}

# Published values that the defaults do not give, and why.
NOT_MET = {
    "sqrt-eps-4": "the table of roots is coarse near 0 and its knots are not published (ew-sqrt)",
    "floordiv-legacy": "a division and a Floor are two units here, so that the product is rounded "
                       "between them; the two oldest families do not (ew-floordiv)",
}

# Options that have an effect only together with an option of another rule.
BESIDE = {
    ("probe-product", "wide"): {"mac-tile": "none"},  # align12 also rounds the product
    ("probe-interior-cross", "per-pass"): {"mac-tile": "none"},  # align12 rounds 90000 + 30000
}


NAMES = {"inf": math.inf, "nan": math.nan, "f16": f16, "f16bits": value_of, "abs": abs, "len": len,
         "range": range, "all": all, "any": any, "bits": bits_of, "bool": bool}


def ones(*shape):
    return 1.0 if not shape else [ones(*shape[1:]) for _ in range(shape[0])]


def evaluated(vector):
    inputs = {}
    for name, text in vector["inputs"].items():
        inputs[name] = value_of_text(text, {**NAMES, "ones": ones, **inputs})
    return inputs


UNARY = {"relu": {}, "sigmoid": {}, "tanh": {}, "erf": {}, "exp": {}, "sqrt": {}, "softplus": {},
         "softsign": {}, "square": {}, "atan": {}, "round": {}, "floor": {}, "silu": {},
         "gelu": {"mode": "EXACT"}, "rsqrt": {"epsilon": 0.0}, "log": {"epsilon": 0.0},
         "inverse": {"epsilon": 0.0}}
BINARY = {"add", "sub", "mul", "maximum", "minimum", "equal", "real_div", "floor_div", "pow"}
REDUCTIONS = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_l1_norm", "reduce_log_sum_exp"}

# The calls for each operation, from its attributes, its inputs, and the input x as a flat list.
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
    # The scale 15360 means 1.0 if it is read as bits, and about 0 if it is read as a number.
    "netplist fp16 parameter": lambda a, i, x: [
        Call("GOC", ScaleScalar=15360, BiasScalar=0).add("x", [1, 1, 1, 1], [15360.0])],
    "host exact sum": lambda a, i, x: reduction("reduce_sum", x),
    "host fp16 running sum": lambda a, i, x: reduction("reduce_sum", x),
}

# Host controls give the results of other options of the engine's rules.
OPTIONS = {"host exact sum": {"mac-tile": "none"}, "host fp16 running sum": {"red-sum": "narrow"}}

# Options that need other units, or another unit of the chain.
COMPOSED = {
    ("probe-logsumexp", "plain"): lambda a, i: (plain_log_sum_exp(flat(i["x"])), {}),
    # The last element is the result of a running sum.
    ("probe-cumsum", "running"): lambda a, i: (reduction("reduce_sum", i["x"]),
                                               {"red-sum": "narrow"}),
    ("probe-int8-scale", "premul"): lambda a, i: (int8_conv(a, i, "premul"), {}),
    ("probe-int8-scale", "postscale"): lambda a, i: (int8_conv(a, i, "postscale"), {}),
}


def trigonometry(op, x):
    """By ONNX, because two families have no such unit and use a polynomial (fam-trig)."""
    shape = f"float[1,1,1,{len(x)}]"
    return {"onnx": f"({shape} x) => ({shape} y) {{ y = {op}(x) }}",
            "values": [[bits_of(v) for v in x]]}


def calls_of(vector):
    inputs = evaluated(vector)
    x = flat(inputs["x"]) if "x" in inputs else []
    return FORMS[vector["op"]](vector.get("attrs", {}), inputs, x)


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
        return bool(value_of_text(compare["expr"], {**NAMES, **evaluated(vector), "y": y}))
    if compare["kind"] == "first_input":
        x = flat(evaluated(vector)["x"])
        first = next(v for v, y in zip(x, got) if math.isinf(y))
        return abs(first - number(vector["expect"])) <= compare["tol"]
    assert compare["kind"] == "max_abs_error", compare
    x = [f16(v) for v in flat(evaluated(vector)["x"])]
    worst = max(abs(EXACT_FUNCTIONS[vector["op"]](v) - y) for v, y in zip(x, got))
    return worst <= vector["expect"]


def cosine(x, y):
    norm = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    return sum(a * b for a, b in zip(x, y)) / norm


def check_two(program, vector, build):
    """Runs one call on two inputs, x1 and x2."""
    inputs = evaluated(vector)
    y = {}
    for name in ("1", "2"):
        bits = program.run(build(inputs, flat(inputs["x" + name])), vector["target"])
        y["y" + name] = [value_of(b) for b in bits]
    flat_bits = {"bits": lambda values: [bits_of(v) for v in values]}
    return bool(value_of_text(vector["compare"]["expr"], {**NAMES, **flat_bits, **y}))


def check_nan_rms(program, vector):
    return check_two(program, vector, rms_norm)


def check_nan_layer_norm(program, vector):
    return check_two(program, vector, layer_norm)


def check_argmax_indices(program, vector):
    indices = flat(evaluated(vector)["index"])
    got = [value_of(program.run(position(i), vector["target"])[0]) for i in indices]
    return agrees(vector["expect"], got)


def check_resident(program, vector):
    """The output is bound to the input: each dispatch reads the result of the previous one."""
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
    """With products that fp16 can represent: a multiply rounds them, the MAC array does not."""
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
    """The units of two families differ by at most one ulp on random numbers."""
    x, y = some(512, 8.0), some(512, 8.0, seed=2)
    for calls in (binary("add", x, y), binary("mul", x, y), binary("real_div", x, y),
                  unary("sigmoid", x), unary("exp", x), reduction("reduce_sum", x), matmul(x, y)):
        first, second = (program.run(calls, target) for target in ("H13", "H17s"))
        if any(abs(a - b) > vector["compare"]["n"] for a, b in zip(first, second)):
            return False
    return True


def check_three(program, vector):
    """(a + b) + c or a + (b + c), by the vector's attribute `graph`."""
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
    """The element to compare with the option's answer."""
    inputs, attrs = evaluated(vector), vector.get("attrs", {})
    composed = COMPOSED.get((vector["id"], option))
    if composed:
        calls, options = composed(attrs, inputs)
    else:
        calls = calls_of(vector)
        options = {vector["rule"]: option, **BESIDE.get((vector["id"], option), {})}
    return value_of(program.run(calls, vector["target"], options)[-1])


def check_vector(program, vector):
    """The failures, as lines of text."""
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
    program = Program(sys.argv[1:])
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
                failures.append((vector["id"], "passes now: remove it from NOT_MET"))
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
        print("tested with", options, ":", vector, option)
    for line in failures:
        print("FAILED:", *line)
    total = sum((c for c in counts.values()), collections.Counter())
    print(", ".join(f"{total[c]} {c}" for c in columns))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
