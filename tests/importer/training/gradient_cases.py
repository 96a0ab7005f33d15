"""Graphs whose gradients gradient_test.py checks: every operator with a gradient, in each form.

A case is the text of a graph without its last two lines (ONNX's text form). Each float tensor that
it declares in `<...>` is a weight with random elements, and `y` is the result. `range` gives the
elements' interval, by name or for all.
"""
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    text: str  # "<declared> body"; the result is y
    declared: str
    dims: list  # of y
    range: dict = field(default_factory=dict)
    cosine: float = 0.9999
    fp32: float = 2e-4  # largest relative error on ONNX Runtime
    step: float = 1e-5  # of the differences
    inputs: dict = field(default_factory=dict)  # integers of the graph's inputs, by name
    on_cpu: bool = False  # a node of the step stays on the CPU


def unary(op, low=-2.0, high=2.0, attributes="", name=None, **more):
    return Case(name or op, f"y = {op}{attributes}(x)", "float[3,4,5] x", [3, 4, 5],
                {"x": (low, high)}, **more)


def binary(op, a, b, dims, name=None, **more):
    return Case(name or f"{op}_{a}_{b}".replace(",", "x"), f"y = {op}(a, b)",
                f"float[{a}] a, float[{b}] b", dims, **more)


I64 = "Constant<value = int64[{n}] {{{values}}}>()"


def ints(*values):
    return I64.format(n=len(values), values=", ".join(map(str, values)))


CASES = [
    # Table 15.1: activations.
    unary("Relu"), unary("Sigmoid", -6, 6), unary("Tanh", -3, 3),
    unary("Gelu", -3, 3, step=2e-3, fp32=1e-3), unary("Gelu", -3, 3, '<approximate = "tanh">', "Gelu_tanh"),
    Case("Silu", "s = Sigmoid(x) y = Mul(x, s)", "float[3,4,5] x", [3, 4, 5], {"x": (-4, 4)}),
    unary("LeakyRelu", attributes="<alpha = 0.1>"), unary("Elu", attributes="<alpha = 0.5>"),
    unary("Softplus"), unary("Softsign"), unary("HardSigmoid", -4, 4), unary("HardSwish", -4, 4),
    unary("Mish"), unary("Selu"), unary("Celu"),
    # Elementwise.
    binary("Add", "2,3,4", "3,1", [2, 3, 4]), binary("Sub", "2,3,4", "4", [2, 3, 4]),
    binary("Sub", "1,4", "2,3,4", [2, 3, 4], name="Sub_broadcast_first"),
    binary("Mul", "2,3,4", "2,1,4", [2, 3, 4]),
    binary("Div", "2,3,4", "1,3,1", [2, 3, 4], range={"b": (0.5, 2)}),
    binary("Max", "2,3,4", "3,4", [2, 3, 4]), binary("Min", "2,3,4", "2,3,4", [2, 3, 4]),
    Case("Square", "y = Mul(x, x)", "float[3,4] x", [3, 4]),
    Case("Pow_2", "p = Constant<value = float {2}>() y = Pow(x, p)", "float[3,4] x", [3, 4]),
    Case("Pow_3", "p = Constant<value = float {3}>() y = Pow(x, p)", "float[3,4] x", [3, 4]),
    Case("Pow_1_5", "p = Constant<value = float {1.5}>() y = Pow(x, p)", "float[3,4] x", [3, 4],
         {"x": (0.5, 2)}),
    Case("Sum", "y = Sum(a, b, c)", "float[3,4] a, float[4] b, float[3,1] c", [3, 4]),
    Case("Mean", "y = Mean(a, b)", "float[3,4] a, float[3,4] b", [3, 4]),
    Case("Where", "z = Constant<value = float {0}>() c = Greater(a, z) y = Where(c, b, a)",
         "float[3,4] a, float[4] b", [3, 4]),
    Case("Clip", "low = Constant<value = float {-0.5}>() high = Constant<value = float {0.7}>() "
         "y = Clip(x, low, high)", "float[3,4] x", [3, 4]),
    # Unary math.
    unary("Exp", -3, 3), unary("Sqrt", 0.3, 4), unary("Log", 0.3, 4), unary("Erf", step=2e-3, fp32=1e-3),  # the reference evaluator computes it in float32
   
    unary("Cos", -3, 3), unary("Sin", -3, 3), unary("Abs"), unary("Neg"),
    unary("Reciprocal", 0.5, 3),
    Case("Rsqrt", "s = Sqrt(x) y = Reciprocal(s)", "float[3,4] x", [3, 4], {"x": (0.3, 4)}),
    # Linear.
    binary("MatMul", "5,6", "6,7", [5, 7]), binary("MatMul", "2,3,5,6", "6,7", [2, 3, 5, 7]),
    binary("MatMul", "2,3,5,6", "2,3,6,4", [2, 3, 5, 4]),
    binary("MatMul", "2,1,5,6", "3,6,4", [2, 3, 5, 4]),
    binary("MatMul", "6", "2,6,4", [2, 4]), binary("MatMul", "2,5,6", "6", [2, 5]),
    *[Case(f"Gemm_{ta}{tb}", f"y = Gemm<transA = {ta}, transB = {tb}, alpha = 0.5, beta = 2.0>"
           "(a, b, c)", f"float[{'6,5' if ta else '5,6'}] a, float[{'4,6' if tb else '6,4'}] b, "
           "float[4] c", [5, 4]) for ta in (0, 1) for tb in (0, 1)],
    Case("Einsum", 'y = Einsum<equation = "bhid,bhjd->bhij">(a, b)',
         "float[2,3,4,5] a, float[2,3,6,5] b", [2, 3, 4, 6]),
    unary("Softmax", -3, 3), unary("Softmax", -3, 3, "<axis = 1>", "Softmax_1"),
    unary("LogSoftmax", -3, 3),
    # Convolutions with a trained kernel, and with one that is given.
    *[Case(f"Conv_{name}", f"y = Conv<{attributes}>(x, w, b)",
           f"float[{x}] x, float[{w}] w, float[{w.split(',')[0]}] b", y)
      for name, attributes, x, w, y in [
          ("1x1", "pads = [0,0,0,0]", "2,3,5,6", "4,3,1,1", [2, 4, 5, 6]),
          ("3x3", "pads = [1,1,1,1]", "2,3,5,6", "4,3,3,3", [2, 4, 5, 6]),
          ("stride", "pads = [1,0,1,1], strides = [2,2]", "2,3,6,7", "4,3,3,3", [2, 4, 3, 3]),
          ("same", 'auto_pad = "SAME_UPPER", strides = [2,1]', "2,3,5,6", "4,3,3,2", [2, 4, 3, 6]),
          ("dilated", "dilations = [2,1]", "2,3,7,6", "4,3,3,2", [2, 4, 3, 5]),
          ("groups", "group = 2, pads = [1,1,1,1]", "2,4,5,6", "6,2,3,3", [2, 6, 5, 6]),
          ("depthwise", "group = 4", "2,4,5,6", "4,1,3,3", [2, 4, 3, 4]),
          ("1d", "pads = [1,1]", "2,3,8", "4,3,3", [2, 4, 8])]],
    *[Case(f"Conv_given_{name}", "w = Constant<value = float[{w}] {{{v}}}>() "
           "y = {op}<{a}>(x, w)".format(w=w, v=", ".join(
               str(round(((i * 7919) % 97) / 50 - 1, 3)) for i in range(n)), a=a, op=op),
           f"float[{x}] x", y)
      for name, op, a, x, w, n, y in [
          ("3x3", "Conv", "pads = [1,1,1,1]", "2,2,5,6", "3,2,3,3", 54, [2, 3, 5, 6]),
          ("stride", "Conv", "pads = [1,1,1,1], strides = [2,2]", "2,2,6,6", "3,2,3,3", 54,
           [2, 3, 3, 3]),
          ("transpose", "ConvTranspose", "strides = [2,2]", "2,2,3,4", "2,3,2,2", 24,
           [2, 3, 6, 8])]],
    # Pools.
    *[Case(f"{op}_{name}", f"y = {op}Pool{a}(x)", f"float[{x}] x", y)
      for op, name, a, x, y in [
          ("Average", "2x2", "<kernel_shape = [2,2], strides = [2,2]>", "2,3,4,6", [2, 3, 2, 3]),
          ("Average", "pads", "<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>",
           "2,3,5,6", [2, 3, 3, 3]),
          ("Average", "counted",
           "<kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1>", "2,3,5,6",
           [2, 3, 5, 6]),
          ("GlobalAverage", "all", "", "2,3,5,6", [2, 3, 1, 1]),
          ("Max", "2x2", "<kernel_shape = [2,2], strides = [2,2]>", "2,3,4,6", [2, 3, 2, 3]),
          ("Max", "3x3", "<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>", "2,3,5,6",
           [2, 3, 3, 3]),
          ("Max", "left", "<kernel_shape = [2,2], strides = [2,2]>", "2,3,5,7", [2, 3, 2, 3])]],
    # Reductions.
    Case("ReduceSum", f"a = {ints(1)} y = ReduceSum<keepdims = 0>(x, a)", "float[3,4,5] x", [3, 5]),
    Case("ReduceSum_keep", f"a = {ints(0, 2)} y = ReduceSum(x, a)", "float[3,4,5] x", [1, 4, 1]),
    Case("ReduceMean", f"a = {ints(-1)} y = ReduceMean(x, a)", "float[3,4,5] x", [3, 4, 1]),
    Case("ReduceMean_all", "y = ReduceMean(x)", "float[3,4,5] x", [1, 1, 1]),
    Case("ReduceSumSquare", f"a = {ints(1)} y = ReduceSumSquare(x, a)", "float[3,4,5] x",
         [3, 1, 5]),
    Case("ReduceL2", f"a = {ints(1)} y = ReduceL2(x, a)", "float[3,4,5] x", [3, 1, 5]),
    # Shapes and moves.
    Case("Transpose", "y = Transpose<perm = [2,0,1]>(x)", "float[3,4,5] x", [5, 3, 4]),
    Case("Reshape", f"s = {ints(4, 15)} y = Reshape(x, s)", "float[3,4,5] x", [4, 15]),
    Case("Flatten", "y = Flatten(x)", "float[3,4,5] x", [3, 20]),
    Case("Unsqueeze", f"a = {ints(1)} u = Unsqueeze(x, a) b = {ints(0)} y = Squeeze(u, b)",
         "float[1,4,5] x", [1, 4, 5]),
    Case("Slice", f"s = {ints(1, 2)} e = {ints(3, 5)} a = {ints(1, 2)} y = Slice(x, s, e, a)",
         "float[3,4,6] x", [3, 2, 3]),
    Case("Slice_steps", f"s = {ints(0, 1)} e = {ints(4, 6)} a = {ints(1, 2)} t = {ints(1, 2)} "
         "y = Slice(x, s, e, a, t)", "float[3,4,6] x", [3, 4, 3]),
    Case("Concat", "y = Concat<axis = 1>(a, b)", "float[3,4,5] a, float[3,2,5] b", [3, 6, 5]),
    Case("Split", f"s = {ints(2, 3)} p, q = Split<axis = 2>(x, s) r = Relu(q) "
         f"a = {ints(2)} u = ReduceSum(r, a) y = Mul(p, u)", "float[3,4,5] x", [3, 4, 2]),
    Case("Expand", f"s = {ints(3, 4, 5)} y = Expand(x, s)", "float[4,1] x", [3, 4, 5]),
    Case("Tile", f"r = {ints(2, 1, 3)} y = Tile(x, r)", "float[2,3,4] x", [4, 3, 12]),
    Case("Pad", f"p = {ints(0, 1, 2, 1, 0, 1)} y = Pad(x, p)", "float[2,3,4] x", [3, 4, 7]),
    Case("Gather_constant", f"i = {ints(2, 0, 2)} y = Gather<axis = 1>(x, i)", "float[3,4,5] x",
         [3, 3, 5]),
    Case("Gather_embedding", "y = Gather(x, i)", "float[10,6] x", [2, 3, 6],
         inputs={"i": ([2, 3], [1, 4, 1, 9, 0, 4])}, on_cpu=True),
    Case("DepthToSpace", "y = DepthToSpace<blocksize = 2>(x)", "float[2,8,3,4] x", [2, 2, 6, 8]),
    Case("SpaceToDepth", "y = SpaceToDepth<blocksize = 2>(x)", "float[2,2,4,6] x", [2, 8, 2, 3]),
    Case("Trilu", "y = Trilu<upper = 0>(x)", "float[2,5,5] x", [2, 5, 5]),
    Case("Dropout", "y = Dropout(x)", "float[3,4] x", [3, 4]),
    # Normalizations.
    Case("LayerNorm", "y = LayerNormalization(x, s, b)",
         "float[3,4,16] x, float[16] s, float[16] b", [3, 4, 16]),
    Case("LayerNorm_axis", "y = LayerNormalization<axis = 1>(x, s, b)",
         "float[3,4,8] x, float[4,8] s, float[4,8] b", [3, 4, 8]),
    Case("RmsNorm", f"q = Mul(x, x) a = {ints(-1)} m = ReduceMean(q, a) "
         "e = Constant<value = float {0.00001}>() v = Add(m, e) r = Sqrt(v) n = Div(x, r) "
         "y = Mul(n, s)", "float[3,4,16] x, float[16] s", [3, 4, 16]),
    Case("GroupNorm", "y = GroupNormalization<num_groups = 2>(x, s, b)",
         "float[2,4,5,6] x, float[4] s, float[4] b", [2, 4, 5, 6],
         step=5e-3, fp32=1e-3),  # the reference evaluator computes it in float32
    Case("InstanceNorm", "y = InstanceNormalization(x, s, b)",
         "float[2,4,5,6] x, float[4] s, float[4] b", [2, 4, 5, 6]),
    Case("L2Norm", "y = LpNormalization<axis = 1, p = 2>(x)", "float[3,8] x", [3, 8]),
    Case("BatchNorm", "m = Constant<value = float[4] {0.1, -0.2, 0.3, 0.0}>() "
         "v = Constant<value = float[4] {0.5, 1.5, 1.0, 0.8}>() "
         "y = BatchNormalization(x, s, b, m, v)", "float[2,4,5,6] x, float[4] s, float[4] b",
         [2, 4, 5, 6]),
]

# The operations of the guide's table 15.1 (training.json), and a case of each.
TABLE = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "gelu": "Gelu", "silu": "Silu",
    "mul": "Mul_2x3x4_2x1x4", "add": "Add_2x3x4_3x1", "sub": "Sub_2x3x4_4", "square": "Square",
    "matmul": "MatMul_5x6_6x7", "batched_matmul": "MatMul_2x3x5x6_2x3x6x4", "softmax": "Softmax",
    "conv": "Conv_3x3", "avg_pool": "Average_2x2", "max_pool": "Max_2x2",
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "transpose": "Transpose",
    "reshape": "Reshape", "flatten": "Flatten", "slice": "Slice", "concat": "Concat",
    "layer_norm": "LayerNorm", "rms_norm": "RmsNorm", "group_norm": "GroupNorm",
    "l2_norm": "L2Norm", "exp": "Exp", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "log": "Log",
    "erf": "Erf", "cos": "Cos",
}

# Graphs whose gradient is refused, with words of the error.
REFUSED = [
    ("CumSum", "a = Constant<value = int64 {1}>() y = CumSum(x, a)", "float[3,4] x", [3, 4],
     "CumSum has no gradient: it has a forward operation"),
    ("ReduceMax", f"a = {ints(1)} y = ReduceMax(x, a)", "float[3,4] x", [3, 1],
     "ReduceMax has no gradient"),
    ("ReduceMin", f"a = {ints(1)} y = ReduceMin(x, a)", "float[3,4] x", [3, 1],
     "ReduceMin has no gradient"),
    ("PRelu", "y = PRelu(x, s)", "float[3,4] x, float[4] s", [3, 4], "parametric activations"),
    ("Round", "y = Round(x)", "float[3,4] x", [3, 4], "slope is 0"),
    ("Pow", "y = Pow(x, p)", "float[3,4] x, float[4] p", [3, 4], "one constant number"),
    ("Slice", f"s = {ints(3)} e = {ints(-5)} a = {ints(1)} t = {ints(-1)} y = Slice(x, s, e, a, t)",
     "float[3,4] x", [3, 4], "negative steps"),
    ("Pad", f'p = {ints(0, 1, 0, 1)} y = Pad<mode = "edge">(x, p)', "float[3,4] x", [3, 6],
     "Pad in mode edge"),
    ("ConvTranspose", "y = ConvTranspose(x, w)", "float[1,2,4,4] x, float[2,3,2,2] w", [1, 3, 5, 5],
     "ConvTranspose has no gradient by its weights"),
    *[(op, f"y, h = {op}<hidden_size = 3>(x, w, r)", f"float[2,1,4] x, float[1,{gates},4] w, float[1,{gates},3] r",
       [2, 1, 1, 3], f"{op} has no gradient") for op, gates in (("LSTM", 12), ("GRU", 9), ("RNN", 3))],
    ("TopK", f"k = {ints(2)} y, i = TopK(x, k)", "float[3,4] x", [3, 2], "TopK has no gradient"),
]
