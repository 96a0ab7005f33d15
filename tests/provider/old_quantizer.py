"""Quantizes a float model as ONNX Runtime's quantizer did up to version 1.8 (mode IntegerOps): Conv and
MatMul become ConvInteger and MatMulInteger, a Cast and a Mul by the product of the scales.

    model = old_quantizer.quantized(model, old_quantizer.SPELLINGS["1.2"])

Weights have 7 bits, because ONNX Runtime's sums overflow on x86 processors without VNNI.
"""

import dataclasses

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Spelling:
    # DynamicQuantizeLinear; else its nodes, which opset 10 needed. Their zero point is wrong if all
    # elements are above 0, so that ONNX Runtime's result is too; such activations are always fused.
    fused: bool = True
    signed_activations: bool = False  # int8, with the zero point 0; never fused
    signed_weights: bool = True
    by_column: bool = False  # a scale for each column of a MatMul
    integer_bias: bool = False  # the bias of a Conv is added to the integers


SPELLINGS = {
    "1.2": Spelling(signed_weights=False, integer_bias=True),
    "1.2, opset 10": Spelling(fused=False, signed_weights=False, integer_bias=True),
    "1.2, int8": Spelling(fused=False, signed_activations=True),
    "1.4": Spelling(),
    "1.8, per channel": Spelling(by_column=True),
}


class Quantizer:
    def __init__(self, model, spelling):
        self.spelling = spelling
        self.model = ModelProto()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.nodes, self.done = [], {}
        self.above_0 = {node.output[0] for node in self.graph.node
                        if node.op_type in ("Exp", "HardSigmoid", "Sigmoid", "Softmax")}
        self.above_0.update(value.name for value in self.graph.input)  # random inputs are
        self.products = 0

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def constant(self, name, array):
        if name not in self.done:
            self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
            self.done[name] = name
        return name

    def floats(self, name, number):
        return self.constant(name, np.float32(number))

    def weight(self, name, axis):
        """The integers, scale and zero point of a constant, quantized by `axis` if it is not None."""
        key = f"{name}/{axis}"
        if key not in self.done:
            values = self.constants[name].astype(np.float32)
            others = tuple(i for i in range(values.ndim) if i != axis)
            least = np.minimum(values.min(axis=None if axis is None else others, keepdims=True), 0)
            most = np.maximum(values.max(axis=None if axis is None else others, keepdims=True), 0)
            if self.spelling.signed_weights:
                scale = np.maximum(np.maximum(-least, most) / 63, 1e-8).astype(np.float32)
                zero, low, high, kind = np.zeros_like(scale), -63, 63, np.int8
            else:
                scale = np.maximum((most - least) / 127, 1e-8).astype(np.float32)
                zero, low, high, kind = np.round(-least / scale), 0, 127, np.uint8
            codes = np.clip(np.round(values / scale) + zero, low, high).astype(kind)
            shape = () if axis is None else (values.shape[axis],)
            self.done[key] = (
                self.constant(f"{key}_quantized", codes),
                self.constant(f"{key}_scale", scale.reshape(shape)),
                self.constant(f"{key}_zero_point", zero.astype(kind).reshape(shape)),
            )
        return self.done[key]

    def activation(self, x):
        if x in self.done:
            return self.done[x]
        made = names = (f"{x}_quantized", f"{x}_scale", f"{x}_zero_point")
        if self.spelling.fused or (x in self.above_0 and not self.spelling.signed_activations):
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], names))
        else:
            least = self.node("ReduceMin", [x], f"{x}_ReduceMin", keepdims=0)
            most = self.node("ReduceMax", [x], f"{x}_ReduceMax", keepdims=0)
            if self.spelling.signed_activations:
                zero = self.constant("fixed_zero_zp", np.int8(0))
                made = (names[0], names[1], zero)
                largest = self.node("Max", [self.node("Abs", [least], f"{x}_ReduceMin_Abs"),
                                            self.node("Abs", [most], f"{x}_ReduceMax_Abs")],
                                    f"{x}_Abs_Max")
                self.node("Div", [largest, self.floats("fixed_quantization_range_int8", 127)], names[1])
            else:
                zero = self.floats("fixed_zero", 0)
                steps = self.floats("fixed_quantization_range_uint8", 255)
                self.node("Div", [self.node("Sub", [most, least], f"{x}_scale_Sub"), steps], names[1])
                shift = self.node("Sub", [zero, least], f"{x}_zero_point_Sub")
                shift = self.node("Div", [shift, names[1]], f"{x}_zero_point_Div")
                shift = self.node("Floor", [shift], f"{x}_zero_point_Floor")
                self.node("Cast", [shift], names[2], to=TensorProto.UINT8)
            self.node("QuantizeLinear", [x, made[1], made[2]], names[0])
        self.done[x] = made
        return made

    def product(self, node):
        is_conv = node.op_type == "Conv"
        operands = []
        for name in node.input[:2]:
            if name not in self.constants:
                operands.append(self.activation(name))
                continue
            by_column = self.spelling.by_column and not is_conv and self.constants[name].ndim == 2
            operands.append(self.weight(name, 1 if by_column else None))
        y = node.output[0]
        integers = f"{y}_output_quantized"
        self.nodes.append(helper.make_node(
            "ConvInteger" if is_conv else "MatMulInteger",
            [o[0] for o in operands] + [o[2] for o in operands], [integers]))
        self.nodes[-1].attribute.extend(node.attribute)
        scale = self.node("Mul", [o[1] for o in operands], f"{y}_scales_mul")
        bias = node.input[2] if is_conv and len(node.input) == 3 else None
        if bias:
            rank = self.constants[node.input[1]].ndim
            shape = self.constant(f"reshape_shape{rank}", np.array([1, -1] + [1] * (rank - 2)))
        if bias and self.spelling.integer_bias:
            steps = self.node("Mul", [o[1] for o in operands], f"{y}_bias_scale")
            steps = self.node("Div", [bias, steps], f"{y}_bias_tmp_quant")
            steps = self.node("Floor", [steps], f"{y}_bias_quant_rounded")
            steps = self.node("Cast", [steps], f"{y}_bias_quantized", to=TensorProto.INT32)
            steps = self.node("Reshape", [steps, shape], f"{y}_reshape")
            integers = self.node("Add", [integers, steps], f"{y}_bias_add")
        cast = self.node("Cast", [integers], f"{y}_cast_output", to=TensorProto.FLOAT)
        if not bias or self.spelling.integer_bias:
            self.node("Mul", [cast, scale], y)
            return
        scaled = self.node("Mul", [cast, scale], f"{y}_scaled")
        self.node("Add", [scaled, self.node("Reshape", [bias, shape], f"{y}_bias_reshape")], y)

    def run(self):
        for node in list(self.graph.node):
            constants = [name in self.constants for name in node.input[:2]]
            fits = (node.op_type == "Conv" and constants == [False, True]) or (
                node.op_type == "MatMul" and constants[0] is False)
            if fits:
                self.products += 1
                self.product(node)
            else:
                self.nodes.append(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        return self.model


def quantized(model, spelling):
    quantizer = Quantizer(model, spelling)
    made = quantizer.run()
    assert quantizer.products > 0, "the model has no Conv or MatMul"
    return made
