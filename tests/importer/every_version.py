"""Imports every ONNX operator at every version since opset 7 and compares it with ONNX Runtime.

    every_version.py REWRITE [--least N] [--operator NAME] [--verbose]

REWRITE is the program of rewrite_main.cc. For each version of each operator's schema that is valid
in opset 7 or later, the script converts one of ONNX's node cases to that version: inputs that were
attributes become attributes, and parts that did not exist yet are removed (by BECAME_INPUTS and the
schema). ONNX's checker decides whether the result is a valid model. The importer then brings it to
the working opset. ONNX Runtime must give the same results for both; if it does not run the
original, the reference is ONNX's reference evaluator. Versions without a valid model are listed
with the reason. Exit code 1: a different result, a refusal, or fewer than N versions compared.
"""
import argparse
import collections
import os
import sys
import tempfile
import warnings

import node_cases
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from onnx_cases import UNFED, is_random, load_cases  # on the path by node_cases

OLDEST = 7
REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"]
# Operator: the version in which inputs replaced attributes, and their names by input.
BECAME_INPUTS = {
    "Clip": (11, {1: "min", 2: "max"}),
    "DFT": (20, {2: "axis"}),
    "Dropout": (12, {1: "ratio"}),
    "Pad": (11, {1: "pads", 2: "value"}),
    "ReduceSum": (13, {1: "axes"}),
    "Slice": (10, {1: "starts", 2: "ends", 3: "axes"}),
    "Split": (13, {1: "split"}),
    "Squeeze": (13, {1: "axes"}),
    "TopK": (10, {1: "k"}),
    "Unsqueeze": (13, {1: "axes"}),
    "Upsample": (9, {1: "scales"}),
    **{f"Reduce{name}": (18, {1: "axes"}) for name in REDUCTIONS},
}
SCALARS = {"axis", "k", "max", "min", "ratio", "value"}  # the other attributes are lists
# Inputs that moved: the first version of the new order, and the new indices in the older order.
MOVED_INPUTS = {"Resize": (11, [0, 2])}
# Models for operators without a single-node case. Their inputs are random.
TWO = "(float[2] a, float[2] b) => "
MODELS = {
    "ConcatFromSequence": TWO + "(float[4] y) { s = SequenceConstruct(a, b) "
                                "y = ConcatFromSequence<axis = 0>(s) }",
    "GlobalLpPool": "(float[1,2,3,3] x) => (float[1,2,1,1] y) { y = GlobalLpPool<p = 2>(x) }",
    "Loop": "(float[2] x) => (float[2] y) { m = Constant<value = int64 {3}>() "
            "c = Constant<value = bool {1}>() y = Loop(m, c, x) <body = b (int64 i, bool k, "
            "float[2] d) => (bool l, float[2] e) { l = Identity(k) e = Add(d, d) }> }",
    "MaxRoiPool": "(float[1,1,4,4] x) => (float[1,1,2,2] y) { r = Constant<value = float[1,5] "
                  "{0, 0, 0, 3, 3}>() y = MaxRoiPool<pooled_shape = [2,2]>(x, r) }",
    "Multinomial": "(float[2,3] x) => (int32[2,4] y) { y = Multinomial<sample_size = 4>(x) }",
    "Optional": "(float[2] x) => (bool y) { o = Optional(x) y = OptionalHasElement(o) }",
    "RandomNormal": "() => (float[2,3] y) { y = RandomNormal<shape = [2,3]>() }",
    "RandomNormalLike": "(float[2,3] x) => (float[2,3] y) { y = RandomNormalLike(x) }",
    "RandomUniform": "() => (float[2,3] y) { y = RandomUniform<shape = [2,3]>() }",
    "RandomUniformLike": "(float[2,3] x) => (float[2,3] y) { y = RandomUniformLike(x) }",
    "SequenceAt": TWO + "(float[2] y) { s = SequenceConstruct(a, b) "
                        "i = Constant<value = int64 {1}>() y = SequenceAt(s, i) }",
    "SequenceConstruct": TWO + "(int64 y) { s = SequenceConstruct(a, b, a) y = SequenceLength(s) }",
    "SequenceEmpty": "(float[2] x) => (int64 y) { s = SequenceEmpty() t = SequenceInsert(s, x) "
                     "y = SequenceLength(t) }",
    "SequenceErase": TWO + "(int64 y) { s = SequenceConstruct(a, b) t = SequenceErase(s) "
                           "y = SequenceLength(t) }",
    "SequenceLength": TWO + "(int64 y) { s = SequenceConstruct(a, b) y = SequenceLength(s) }",
}
# All versions of ONNX Runtime read this IR version, with and without functions.
IR_VERSION = 8


class Unbuilt(Exception):
    """The reason why no model of this version could be made."""


def versions():
    """Yields (operator, version of the schema, opset to write) for the ONNX domain."""
    history = collections.defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history[schema.name].add(schema.since_version)
    for name in sorted(history):
        known = sorted(history[name])
        before = [v for v in known if v <= OLDEST]
        for version in before[-1:] + [v for v in known if v > OLDEST]:
            yield name, version, max(version, OLDEST)


def cases_by_operator():
    """Operator: its single-node cases as (model, inputs), the smallest first."""
    found = collections.defaultdict(list)
    for case in load_cases(kinds=["node"]):
        node = case.model.graph.node[0]
        if len(case.model.graph.node) == 1 and not node.domain:
            found[node.op_type].append((case.model, case.data_sets[0][0]))
    for cases in found.values():
        cases.sort(key=lambda case: case[0].ByteSize())
    return found


def constant_inputs(model, inputs):
    """Splits inputs into fed ones and constants (shapes, axes, indices), both by name."""
    fed, constants = {}, {}
    for port, value in zip(model.graph.input, inputs):
        integers = isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim < 2
        first = port.name == model.graph.node[0].input[0]
        (constants if integers and not first else fed)[port.name] = value
    return fed, constants


def inputs_to_attributes(node, version, values):
    since, attributes = BECAME_INPUTS.get(node.op_type, (0, {}))
    if version >= since:
        return
    inputs = list(node.input)
    for index, name in attributes.items():
        if index >= len(inputs) or not inputs[index]:
            continue
        value = values[inputs[index]]
        if value.size == 0:
            raise Unbuilt(f"the case's '{name}' is empty")
        plain = value.item() if name in SCALARS else value.tolist()
        node.attribute.append(helper.make_attribute(name, plain))
    kept = [x for i, x in enumerate(inputs) if i not in attributes]
    del node.input[:]
    node.input.extend(kept)


def move_inputs(node, version):
    since, order = MOVED_INPUTS.get(node.op_type, (0, []))
    if version >= since:
        return
    moved = [node.input[i] for i in order if i < len(node.input)]
    if "" in moved or len(moved) != len(order):
        raise Unbuilt("the case lacks the inputs of that version")
    del node.input[:]
    node.input.extend(moved)


def fit_to_schema(node, schema):
    """Removes attributes, inputs and outputs that the schema does not have."""
    for attribute in list(node.attribute):
        if attribute.name not in schema.attributes:
            node.attribute.remove(attribute)
    for name, attribute in schema.attributes.items():
        if attribute.required and not any(a.name == name for a in node.attribute):
            raise Unbuilt(f"attribute '{name}' is required in that version")
    if node.op_type == "Split" and schema.since_version >= 18 and len(node.input) < 2 and (
            not any(a.name == "num_outputs" for a in node.attribute)):
        raise Unbuilt("'split' or 'num_outputs' is required in that version")
    del node.input[schema.max_input:]
    del node.output[schema.max_output:]
    while node.input and not node.input[-1]:
        del node.input[-1]


def add_empty_inputs(graph, schema):
    """Replaces omitted inputs that were required by tensors without elements (Resize's roi)."""
    node = graph.node[0]
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if not name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            node.input[i] = f"empty_{i}"
            graph.initializer.append(
                numpy_helper.from_array(np.zeros(0, np.float32), node.input[i]))


def check_types(model, schema):
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    node = model.graph.node[0]
    types = {v.name: v.type for v in list(model.graph.input) + list(model.graph.output)}
    types.update({t.name: helper.make_tensor_type_proto(t.data_type, None)
                  for t in model.graph.initializer})
    for formals, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for i, name in enumerate(names):
            formal = formals[min(i, len(formals) - 1)]
            kind = types[name].tensor_type.elem_type if name in types else 0
            text = f"tensor({TensorProto.DataType.Name(kind).lower()})" if kind else ""
            if text and text not in allowed.get(formal.type_str, {formal.type_str}):
                raise Unbuilt(f"'{formal.name}' cannot be {text} in that version")


def build(case, version, opset):
    """Returns the case's model at that version, and its inputs."""
    model, inputs = case
    fed, constants = constant_inputs(model, inputs)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.ir_version = IR_VERSION
    node = made.graph.node[0]
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    if schema.deprecated:
        raise Unbuilt("deprecated in this version")
    values = dict(fed, **constants)
    inputs_to_attributes(node, version, values)
    move_inputs(node, version)
    fit_to_schema(node, schema)
    add_empty_inputs(made.graph, schema)
    del made.opset_import[:]
    made.opset_import.append(helper.make_opsetid("", opset))
    used = set(node.input) | {x for a in node.attribute for n in a.g.node for x in n.input}
    ports = [p for p in made.graph.input if p.name in used and p.name in fed]
    del made.graph.input[:]
    made.graph.input.extend(ports)
    for name in constants:
        if name in used:
            made.graph.initializer.append(numpy_helper.from_array(constants[name], name))
    outputs = [o for o in made.graph.output if o.name in node.output]
    for output in outputs:  # sizes may differ in this version
        for dim in output.type.tensor_type.shape.dim:
            dim.Clear()
    del made.graph.output[:]
    made.graph.output.extend(outputs)
    check_types(made, schema)
    for port in [*ports, *outputs]:
        kind = TensorProto.DataType.Name(port.type.tensor_type.elem_type).lower()
        if any(name in kind for name in UNFED):
            raise Unbuilt(node_cases.NOT_FED)
    try:
        onnx.checker.check_model(made)
    except onnx.checker.ValidationError as error:
        raise Unbuilt(str(error).splitlines()[0][:120]) from error
    return made, [fed[p.name] for p in ports]


def written(opset, text):
    """Returns a model of MODELS, and its inputs."""
    model = onnx.parser.parse_model(
        f'<ir_version: {IR_VERSION}, opset_import: ["" : {opset}]> g {text}')
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise Unbuilt(str(error).splitlines()[0][:120]) from error
    numbers = np.random.default_rng(1)
    shapes = [[d.dim_value for d in p.type.tensor_type.shape.dim] for p in model.graph.input]
    return model, [numbers.random(shape, np.float32) for shape in shapes]


def reference(path, model, inputs):
    """Returns the model's results and their source, or None and the reason if nothing runs it."""
    results, why = node_cases.run(path, inputs)
    if results is not None:
        return results, "ONNX Runtime"
    try:
        feed = {p.name: x for p, x in zip(model.graph.input, inputs)}
        return ReferenceEvaluator(model).run(None, feed), "the reference evaluator"
    except Exception as error:  # the evaluator's exceptions have many classes
        return None, f"{why}; {str(error).splitlines()[0][:80] if str(error) else type(error)}"


def alike(theirs, ours, random):
    if not random:
        return node_cases.same(theirs, ours)
    return all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(theirs, ours))


def first_comparable(name, version, opset, cases, folder):
    """Returns (path, model, inputs, results, source) of the first case that can be run."""
    reason = "ONNX has no node case for it"
    for number, case in enumerate([MODELS[name]] if name in MODELS else cases.get(name, [])):
        try:
            model, inputs = (written(opset, case) if name in MODELS
                             else build(case, version, opset))
        except Unbuilt as error:
            reason = str(error)
            continue
        path = os.path.join(folder, f"{name}_{version}_{number}.onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        results, by = reference(path, model, inputs)
        if results is not None:
            return path, model, inputs, results, by
        reason = by
    raise Unbuilt(reason)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rewrite")
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--operator")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)
    cases = cases_by_operator()
    count = collections.Counter()
    unbuilt, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        todo = []
        for name, version, opset in versions():
            if args.operator not in (None, name):
                continue
            try:
                todo.append((name, version, first_comparable(name, version, opset, cases, folder)))
            except Unbuilt as error:
                unbuilt.append(f"{name}-{version}: {error}")
        said = node_cases.rewrite(args.rewrite, "lift", [row[2][0] for row in todo])
        for (name, version, (path, model, inputs, results, by)), line in zip(todo, said):
            ours, why = None, line
            if line.startswith("ok"):
                # A node that keeps a newer opset may not run in ONNX Runtime either.
                ours, why = reference(path + ".ours", onnx.load(path + ".ours"), inputs)
            if ours is not None and alike(results, ours, is_random(model.graph)):
                count[by] += 1
                if args.verbose:
                    print(f"{name}-{version}: as {by}")
            else:
                wrong.append(f"{name}-{version}: {why or 'different results'} (compared with {by})")
    print("\n".join(["Not compared:", *unbuilt, "", "Wrong:", *wrong, ""]))
    print(", ".join(f"as {by} {n}" for by, n in sorted(count.items())),
          f"not compared {len(unbuilt)}, wrong {len(wrong)}", sep=", ")
    return 1 if wrong or sum(count.values()) < args.least else 0


if __name__ == "__main__":
    sys.exit(main())
