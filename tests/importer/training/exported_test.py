"""Gradients of the exported models, along their own direction, against differences of the loss.

    exported_test.py TRAINING_STEP [--every N] [NAME...]

For each model of models/exported the loss is the mean square of its first float output and a random
target. The step graph must give, on ONNX Runtime in fp32, the slope of the loss in the direction of the
gradients of all weights together.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "models" / "exported"
TOLERANCE = 0.02  # of the slope; differences in fp32 are not better
KINDS = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_}


def is_trainable(model):
    return any(t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 0
               for t in model.graph.initializer)


def loss_of(model):
    for output in model.graph.output:
        if output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            return f"mse:{output.name}:training_target"
    return None


def random_feeds(session, weights):
    random = np.random.default_rng(1)
    feeds = {}
    for port in session.get_inputs():
        kind = KINDS[port.type]
        if port.name in weights:
            feeds[port.name] = weights[port.name]
        elif kind == np.float32:
            feeds[port.name] = random.standard_normal(port.shape).astype(kind)
        elif kind == np.bool_:
            feeds[port.name] = random.integers(0, 2, port.shape).astype(kind)
        else:
            feeds[port.name] = np.ones(port.shape, kind)  # a mask of zeros would have no softmax
    return feeds


def check(program, path, folder):
    """The relative error of the slope; None if no weight can be trained; a text if it fails."""
    model = onnx.load(path)
    loss = loss_of(model)
    if loss is None or not is_trainable(model):
        return None
    step = f"{folder}/step.onnx"
    done = subprocess.run([program, path, step, loss, "optimizer=none"], capture_output=True,
                          text=True)
    if "no weight to train" in done.stderr:
        return None
    if done.returncode:
        return done.stderr.strip()
    names = json.loads(done.stdout)
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            arrays[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    session = ort.InferenceSession(step, providers=["CPUExecutionProvider"])
    feeds = random_feeds(session, {name: arrays[name] for name in names["gradients"]})
    outputs = list(names["gradients"].values())
    gradients = dict(zip(names["gradients"], session.run(outputs, feeds)))
    norm = np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients.values()))
    if not np.isfinite(norm) or norm == 0:
        return f"the norm of the gradients is {norm}"
    loss_at = float(session.run([names["loss"]], feeds)[0][0])
    errors = []
    for share in (0.02, 0.005, 0.001):  # of the loss, by a linear estimate
        distance = share * loss_at / norm
        sides = []
        for sign in (1, -1):
            moved = dict(feeds)
            for name, gradient in gradients.items():
                moved[name] = (feeds[name] + sign * distance * gradient / norm).astype(np.float32)
            sides.append(float(session.run([names["loss"]], moved)[0][0]))
        errors.append(abs((sides[0] - sides[1]) / (2 * distance * norm) - 1))
    return min(errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    failed, count, worst = 0, 0, 0.0
    paths = sorted(FOLDER.glob("*.onnx"))[::words.every]
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            if words.names and path.stem not in words.names:
                continue
            error = check(words.program, str(path), folder)
            if error is None:
                continue
            count += 1
            if isinstance(error, str) or not error < TOLERANCE:
                failed += 1
                print(f"FAILED {path.stem}: {error}")
            else:
                worst = max(worst, error)
    print(f"{count} models, {failed} failures, largest error of a slope {worst:.4f}")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
