"""Every runnable golden vector through the software engine in exact mode, on its target.

Usage: golden_test.py GOLDEN_PROGRAM. Prints counts by rule. A probe-* vector is asked once for each
option of its rule that has an answer, with that option set.
"""

import collections
import json
import math
import pathlib
import struct
import subprocess
import sys

VECTORS = json.loads((pathlib.Path(__file__).parent / "golden_vectors.json").read_text())["vectors"]

# MIL's names where a vector's differ, and what a call needs besides its operands.
UNARY = {"relu": {}, "sigmoid": {}, "tanh": {}, "erf": {}, "exp": {}, "sqrt": {}, "rsqrt": {},
         "log": {}, "inverse": {}, "softplus": {}, "softsign": {}, "gelu": {"mode": "EXACT"},
         "silu": {}, "square": {}, "sin": {}, "cos": {}, "atan": {}, "round": {}, "floor": {}}
BINARY = {"add", "sub", "mul", "maximum", "minimum", "equal", "real_div", "floor_div", "pow"}
REDUCTIONS = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_l1_norm", "reduce_log_sum_exp"}

# Vectors that run nothing on the engine: arithmetic of the host, of the storage formats, of the
# weights' encodings; each is checked where that code is tested.
NOT_OPERATIONS = "an encoding or a figure, not an operation"


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
        self.op, self.attrs, self.inputs, self.values = op, attrs, [], []

    def add(self, name, shape, values, role="input"):
        values = flat(values)
        assert len(values) == math.prod(shape), (name, shape, len(values))
        self.inputs.append({"name": name, "shape": shape, "dtype": "fp16", "role": role})
        self.values.append([bits_of(v) for v in values])
        return self


def conv_call(vector, inputs):
    attrs = vector.get("attrs", {})
    cin, cout = attrs.get("cin", 1), attrs.get("cout", 1)
    kernel = attrs.get("kernel", [1, 1])
    x = flat(inputs["x"])
    width = len(x) // cin
    weights = flat(inputs["w"]) if "w" in inputs else [
        f16((q - flat(inputs["z"])[0]) * flat(inputs["s"])[0]) for q in flat(inputs["q"])]
    call = Call("conv", strides=[1, 1], pad_type="valid", groups=1)
    call.add("x", [1, cin, 1, width], x)
    call.add("weight", [cout, cin, *kernel], weights, "const")
    if "bias" in inputs:
        call.add("bias", [cout], inputs["bias"], "const")
    return call


def slice_call(vector, inputs):
    x = flat(inputs["x"])
    axis = "NCHW".index(vector["attrs"]["axis"])
    shape, begin, size = [1] * 4, [0] * 4, [1] * 4
    shape[axis], begin[axis] = len(x), vector["attrs"]["begin"]
    return Call("slice_by_size", begin=begin, size=size).add("x", shape, x)


def norm_call(op, inputs, x):
    n = len(x)
    if op == "layer_norm":
        return (Call("layer_norm", axes=[-1], epsilon=float(inputs.get("eps", 0)))
                .add("x", [1, 1, 1, n], x)
                .add("gamma", [n], inputs.get("gamma", [1.0] * n), "const")
                .add("beta", [n], inputs.get("beta", [0.0] * n), "const"))
    if op == "instance_norm":
        return Call("instance_norm", epsilon=float(inputs["eps"])).add("x", [1, 1, 1, n], x)
    return Call("l2_norm", axes=[-1], epsilon=float(inputs["eps"])).add("x", [1, 1, 1, n], x)


def pool_call(vector, inputs):
    kernel = vector["attrs"]["kernel"]
    attrs = {"kernel_sizes": kernel, "strides": [1, 1], "pad_type": "valid"}
    if vector["op"] == "avg_pool":
        attrs["exclude_padding_from_average"] = True
    return Call(vector["op"], **attrs).add("x", [1, 1, *kernel], inputs["x"])


def call_of(vector):
    """The operation to run; None for what is no operation."""
    if "any" in vector["inputs"].values():
        return None
    op, inputs, attrs = vector["op"], evaluated(vector), vector.get("attrs", {})
    x = flat(inputs["x"]) if "x" in inputs else []
    row = [1, 1, 1, len(x)]
    if op in UNARY:
        extra = {"epsilon": 0.0} if op in ("rsqrt", "log", "inverse") else {}
        return Call(op, **UNARY[op], **extra).add("x", row, x)
    if op in BINARY and "x" in inputs and "y" in inputs:
        constant = attrs.get("divisor") == "constant"
        return Call(op).add("x", row, x).add("y", row, inputs["y"],
                                             "const" if constant else "input")
    if op in REDUCTIONS:
        return Call(op, axes=[-1], keep_dims=True).add("x", row, x)
    if op == "reduce_argmax":
        return Call(op, axis=-1, keep_dims=True).add("x", row, x)
    if op == "matmul":
        a, b = flat(inputs["a"]), flat(inputs["b"])
        return (Call("matmul", transpose_x=False, transpose_y=False)
                .add("x", [1, 1, 1, len(a)], a).add("y", [1, 1, len(b), 1], b))
    if op == "linear":
        call = Call("linear").add("x", [1, len(flat(inputs["a"]))], inputs["a"])
        call.add("weight", [1, len(flat(inputs["b"]))], inputs["b"], "const")
        if "bias" in inputs:
            call.add("bias", [1], inputs["bias"], "const")
        return call
    if op == "conv":
        return conv_call(vector, inputs)
    if op == "slice_by_size":
        return slice_call(vector, inputs)
    if op in ("avg_pool", "max_pool", "l2_pool"):
        return pool_call(vector, inputs)
    if op == "softmax":
        return Call("softmax", axis=-1).add("x", row, x)
    if op in ("layer_norm", "instance_norm", "l2_norm") and "x" in inputs:
        return norm_call(op, inputs, x)
    if op == "transpose":
        return Call("transpose", perm=[0, 1, 3, 2]).add("x", row, x)
    return None


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def run(self, call, target, options):
        for route in ("mil", "netplist"):
            line = {"target": target.lower(), "route": route, "options": options,
                    "call": {"op": call.op, "inputs": call.inputs, "attrs": call.attrs},
                    "values": call.values}
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            if "bits" in answer:
                break
        return answer


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
    kind, got = vector["compare"]["kind"], [value_of(b) for b in bits]
    if kind == "bits":
        want = vector["expect_bits"]
        want = want if isinstance(want, list) else [want]
        return [int(w, 16) for w in want] == bits
    if kind == "value":
        return agrees(vector["expect"], got)
    if kind == "abs":
        return agrees(vector["expect"], got, vector["compare"]["tol"])
    if kind == "ulp":
        want = vector["expect"] if isinstance(vector["expect"], list) else [vector["expect"]]
        return all(abs(bits_of(w) - b) <= vector["compare"]["n"] for w, b in zip(want, bits))
    if kind == "property":
        y = got[0] if len(got) == 1 else got
        return bool(eval(vector["compare"]["expr"], {**NAMES, **evaluated(vector)}, {"y": y}))
    if kind == "first_input":
        x = flat(evaluated(vector)["x"])
        return next(v for v, y in zip(x, got) if math.isinf(y)) == number(vector["expect"])
    if kind == "max_abs_error":
        x = [f16(v) for v in flat(evaluated(vector)["x"])]
        worst = max(abs(EXACT_FUNCTIONS[vector["op"]](v) - y) for v, y in zip(x, got))
        return worst <= vector["expect"]
    return None


def main():
    program = Program(sys.argv[1])
    counts = collections.defaultdict(collections.Counter)
    failures, skipped = [], []
    for vector in VECTORS:
        if not vector.get("runnable"):
            continue
        rule = vector["rule"]
        call = call_of(vector)
        if call is None:
            counts[rule]["not run"] += 1
            skipped.append((vector["id"], NOT_OPERATIONS))
            continue
        target = "H13" if vector["target"] == "unknown" else vector["target"]
        if vector["compare"]["kind"] == "probe":
            tolerance = vector["compare"].get("tol", 0.0)
            for option, want in vector["answers"].items():
                answer = program.run(call, target, {rule: option})
                got = [value_of(b) for b in answer.get("bits", [])]
                passed = bool(got) and (got[0] == number(want) or
                                        abs(got[0] - number(want)) <= tolerance)
                counts[rule]["passed" if passed else "failed"] += 1
                if not passed:
                    failures.append((vector["id"], option, want, answer if not got else got))
            continue
        answer = program.run(call, target, {})
        passed = "bits" in answer and check(vector, answer["bits"])
        if passed is None:
            counts[rule]["not run"] += 1
            skipped.append((vector["id"], "compare " + vector["compare"]["kind"]))
            continue
        counts[rule]["passed" if passed else "failed"] += 1
        if not passed:
            got = [value_of(b) for b in answer["bits"][:4]] if "bits" in answer else answer
            failures.append((vector["id"], vector["target"], vector.get("expect"), got))
    width = max(map(len, counts))
    for rule, row in sorted(counts.items()):
        print(f"{rule:{width}}  {row['passed']:4} passed  {row['failed']:3} failed  "
              f"{row['not run']:3} not run")
    for line in skipped:
        print("not run:", *line)
    for line in failures:
        print("FAILED:", *line)
    total = sum((c for c in counts.values()), collections.Counter())
    print(f"{total['passed']} passed, {total['failed']} failed, {total['not run']} not run")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
