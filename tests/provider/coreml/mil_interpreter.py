"""Runs a Core ML package on NumPy: opens it with coremltools, which checks the types of all
operations for the package's system, and computes each operation from MIL's public documentation
(https://apple.github.io/coremltools/source/coremltools.converters.mil.mil.ops.defs.html).

    package = Package("net.mlpackage")
    outputs = package.run({"x": x})

Each operation is a function in one of the files imported below. Products, convolutions and pools are
computed by ONNX Runtime in fp32. Each result has the type that coremltools found for it, so fp16 is
rounded as often as there are operations.
"""

import logging
import pathlib

import numpy

import mil_elementwise  # noqa: F401: each adds its operations to OPERATIONS
import mil_images  # noqa: F401
import mil_products  # noqa: F401
import mil_shapes  # noqa: F401
from mil_registry import OPERATIONS

logging.disable(logging.WARNING)  # the libraries that only a Mac has are missing
import coremltools  # noqa: E402
from coremltools.converters.mil.frontend.milproto.load import load as load_program  # noqa: E402
from coremltools.converters.mil.mil.types.symbolic import is_symbolic  # noqa: E402

logging.disable(logging.NOTSET)

NUMPY_TYPES = {"fp16": numpy.float16, "fp32": numpy.float32, "int32": numpy.int32, "bool": numpy.bool_,
               "uint16": numpy.uint16, "uint8": numpy.uint8, "int8": numpy.int8, "int16": numpy.int16}


def nested(operations):
    """The operations, and those of their blocks."""
    for op in operations:
        for block in op.blocks:
            yield from nested(block.operations)
        yield op


class Package:
    """A package that coremltools could open and check. `specification` overrides its version."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.spec = coremltools.utils.load_spec(str(path))
        weights = path / "Data" / "com.apple.CoreML" / "weights"
        self.program = load_program(self.spec, specification_version=self.spec.specificationVersion,
                                    file_weights_dir=str(weights))
        self.function = self.program.functions["main"]

    @property
    def inputs(self):
        return {port.name: list(port.type.multiArrayType.shape) for port in self.spec.description.input}

    def operations(self):
        return [op for op in nested(self.function.operations) if op.op_type != "const"]

    def constants(self):
        """Every weight, read back."""
        for op in nested(self.function.operations):
            if op.op_type == "const":
                yield op.outputs[0].name, op.outputs[0].val
            elif op.op_type.startswith("constexpr_"):
                yield op.outputs[0].name, op.materialized_val_inference()

    def run(self, feeds, states=None):
        """The outputs by name. `states`: by name, and changed as the program writes them."""
        values = {}
        for name, var in self.function.inputs.items():
            if coremltools.converters.mil.mil.types.is_state(var.sym_type):
                values[var] = states
            else:
                values[var] = numpy.asarray(feeds[name]).astype(NUMPY_TYPES[kind(var)])
        with numpy.errstate(all="ignore"):
            for op in self.function.operations:
                self.step(op, values)
        return {var.name: values[var] for var in self.function.outputs}

    @staticmethod
    def step(op, values):
        if op.op_type == "const":
            values[op.outputs[0]] = op.outputs[0].val
            return
        if op.op_type.startswith("constexpr_"):
            values[op.outputs[0]] = op.materialized_val_inference()
            return
        if op.op_type in ("read_state", "coreml_update_state"):
            state = op.input if op.op_type == "read_state" else op.state
            if op.op_type == "coreml_update_state":
                values[state][state.name] = values[op.value]
            values[op.outputs[0]] = numpy.asarray(values[state][state.name]).astype(numpy.float16)
            return
        if op.op_type == "cond":
            block = op.blocks[0 if values[op.pred] else 1]
            for inner in block.operations:
                Package.step(inner, values)
            values.update(zip(op.outputs, (values[result] for result in block.outputs)))
            return
        if op.op_type not in OPERATIONS:
            raise NotImplementedError(f"the interpreter does not have {op.op_type}")

        def read(var):
            if isinstance(var, (list, tuple)):
                return [read(v) for v in var]
            value = values[var]
            is_half = getattr(value, "dtype", None) == numpy.float16
            return numpy.float32(value) if is_half else value

        function = OPERATIONS[op.op_type]
        given = {name: read(var) for name, var in op.inputs.items() if var is not None and (
            isinstance(var, (list, tuple)) or var in values)}
        if "op" in function.__code__.co_varnames[:function.__code__.co_argcount]:
            given["op"] = op
        results = function(**given)
        results = results if isinstance(results, tuple) else (results,)
        for var, result in zip(op.outputs, results):
            result = numpy.asarray(result).astype(NUMPY_TYPES[kind(var)])
            shape = var.shape  # a size that is not known is a symbol
            if len(result.shape) != len(shape) or any(
                    got != want for got, want in zip(result.shape, shape) if not is_symbolic(want)):
                raise AssertionError(f"{op.op_type} '{var.name}': {result.shape}, want {shape}")
            values[var] = result


def kind(var):
    name = coremltools.converters.mil.mil.types.builtin_to_string(var.dtype)
    return name
