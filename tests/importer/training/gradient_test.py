"""Gradients of every operator, against finite differences in float64 and ONNX Runtime.

    gradient_test.py TRAINING_STEP [CASE...]

For each case the loss is sum(y * factors) with fixed random factors. The step graph of TRAINING_STEP
(step_main.cc) must give the gradients of finite differences: on ONNX Runtime in fp32, and on the
software engine in fast and exact mode by their cosine.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import onnxruntime_ep_ane as ane
from gradient_cases import CASES, REFUSED, TABLE

SCALE = 64  # of the loss; at 1024 the padded convolutions pass 4094 in a slice of h13
EXACT = 0.999  # cosine of exact numerics, whose products are rounded to 12 bits


def graph_text(body, declared, dims, inputs):
    sizes = ",".join(map(str, dims))
    given = ", ".join(f"int64[{','.join(map(str, d))}] {name}" for name, (d, _) in inputs.items())
    axes = ", ".join(str(i) for i in range(len(dims)))
    return (f"test ({given}) => (float[1] loss) <float[{sizes}] factors, {declared}> {{ {body} "
            f"terms = Mul(y, factors) all_axes = Constant<value = int64[{len(dims)}] {{{axes}}}>() "
            "total = ReduceSum<keepdims = 0>(terms, all_axes) "
            "one = Constant<value = int64[1] {1}>() loss = Reshape(total, one) }")


def build(text, values, double=False):
    if double:
        text = text.replace("float", "double")
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    made = {name for node in model.graph.node for name in node.output}
    infos = [i for i in model.graph.value_info if i.name not in made]
    del model.graph.value_info[:]
    for info in infos:
        kind = np.float64 if double else np.float32
        array = values(info.name, [d.dim_value for d in info.type.tensor_type.shape.dim])
        model.graph.initializer.append(numpy_helper.from_array(array.astype(kind), info.name))
    return model


def elements(case_range):
    """Random elements, the same for each name, that fp16 holds exactly and that are apart."""
    def make(name, dims):
        low, high = case_range.get(name, case_range.get("", (-1.0, 1.0)))
        seed = np.random.default_rng(sum(map(ord, name)) + len(dims))
        count = int(np.prod(dims))
        places = seed.permutation(count) + seed.uniform(0.2, 0.8, count)
        return np.round((low + (high - low) * places / count) * 1024).reshape(dims) / 1024
    return make


def differences(text, values, weights, feeds, step):
    model = build(text, values, double=True)
    base = {i.name: numpy_helper.to_array(i).copy() for i in model.graph.initializer}
    del model.graph.initializer[:]
    for name, array in base.items():
        model.graph.input.append(onnx.helper.make_tensor_value_info(
            name, onnx.TensorProto.DOUBLE, array.shape))
    session = ReferenceEvaluator(model)
    result = {}
    for name in weights:
        gradient = np.zeros(base[name].size)
        for i in range(gradient.size):
            sides = []
            for sign in (1, -1):
                moved = dict(base, **feeds)
                moved[name] = base[name].copy()
                moved[name].flat[i] += sign * step
                sides.append(float(session.run(["loss"], moved)[0][0]))
            gradient[i] = (sides[0] - sides[1]) / (2 * step)
        result[name] = gradient.reshape(base[name].shape)
    return result


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


class Failures(list):
    def expect(self, holds, what):
        if not holds:
            self.append(what)
            print("FAILED", what)


def make_step(program, folder, model, *words):
    path, output = f"{folder}/model.onnx", f"{folder}/step.onnx"
    onnx.save(model, path)
    done = subprocess.run([program, path, output, "output:loss", "optimizer=none", *words],
                          capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    return output, json.loads(done.stdout)


def check(case, program, folder, failures):
    text = graph_text(case.text, case.declared, case.dims, case.inputs)
    values = elements(case.range)
    weights = [word.split()[1] for word in case.declared.replace(", f", ",\nf").split(",\n")]
    model = build(text, values)
    step, names = make_step(program, folder, model, f"train_only={','.join(weights)}",
                            f"loss_scale={SCALE}")
    failures.expect(step, f"{case.name}: {names}")
    if not step:
        return
    feeds = {n: np.array(v, np.int64).reshape(d) for n, (d, v) in case.inputs.items()}
    wanted = differences(text, values, weights, feeds, case.step)
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    feeds.update({name: arrays[name] for name in weights})
    outputs = [names["gradients"][name] for name in weights]
    got = ort.InferenceSession(step, providers=["CPUExecutionProvider"]).run(outputs, feeds)
    line = [case.name]
    for name, array in zip(weights, got):
        error = np.abs(array - wanted[name]).max() / max(np.abs(wanted[name]).max(), 1e-3)
        failures.expect(array.shape == wanted[name].shape and error < case.fp32,
                        f"{case.name}: fp32 gradient of {name}: error {error:.2g}")
    for numerics, least in (("fast", case.cosine), ("exact", min(EXACT, case.cosine))):
        session = ane.Session(step, target="h13", numerics=numerics)
        on_engine = session.run(feeds)
        if numerics == "fast":
            line.append(str(session).splitlines()[0])
            placed = session.plan.summary
            failures.expect(case.on_cpu or placed.cpu_segments == 0,
                            f"{case.name}: not wholly on the engine: " + "; ".join(
                                f"{n.op_type} {n.message}" for n in session.plan.nodes
                                if n.placement == "cpu"))
        for name, output in zip(weights, outputs):
            got = cosine(on_engine[output], wanted[name])
            failures.expect(got >= least, f"{case.name}: {numerics} gradient of {name}: {got:.6f}")
            line.append(f"{numerics} {name} {got:.6f}")
    print(*line)


def refuse(name, body, declared, dims, words, program, folder, failures):
    model = build(graph_text(body, declared, dims, {}), elements({}))
    step, error = make_step(program, folder, model)
    failures.expect(not step and words in error and f"({name})" in error,
                    f"refused {name}: {error}")


def main(program, only):
    failures = Failures()
    facts = json.loads((pathlib.Path(__file__).parent / "training.json").read_text())
    failures.expect({row["op"] for row in facts["gradients"]} == set(TABLE), "table 15.1")
    failures.expect(set(TABLE.values()) <= {case.name for case in CASES}, "cases of table 15.1")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if not only or case.name in only:
                check(case, program, folder, failures)
        for case in REFUSED:
            if not only:
                refuse(*case, program, folder, failures)
    print(f"{len(CASES)} cases, {len(REFUSED)} refusals, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
