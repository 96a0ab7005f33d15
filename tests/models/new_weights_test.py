"""Session.update_weights() on models written by exporters (models/exported), and on real models.

    new_weights_test.py SOURCE_FOLDER [--real] [NAME...]

Changes every float initializer of a model by a seeded perturbation. A session that gets the new values must
compute the same bits as a session of a model file that has them, in both numerics. Weights that decide the plan
must be refused, and nothing may have changed then; they keep their values, and the others are changed. Needs the
Python package in PYTHONPATH. Prints a table.
"""

import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper

import onnxruntime_ep_ane as ane

SOURCE = pathlib.Path(sys.argv[1])
TYPES = {onnx.TensorProto.FLOAT: numpy.float32, onnx.TensorProto.FLOAT16: numpy.float16,
         onnx.TensorProto.INT64: numpy.int64, onnx.TensorProto.INT32: numpy.int32, onnx.TensorProto.BOOL: numpy.bool_}
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


def perturbed(model, names, seed):
    """A copy of the model with new values for these initializers, and the values by name."""
    random = numpy.random.default_rng(seed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    arrays = {}
    for tensor in changed.graph.initializer:
        if tensor.name not in names:
            continue
        array = numpy_helper.to_array(tensor)
        # Zeros and signs stay, and nothing grows: a variance is not below 0, a mask stays finite.
        factors = 1 - 0.05 * random.uniform(0, 1, array.shape)
        arrays[tensor.name] = (array * factors).astype(array.dtype)
        tensor.CopyFrom(numpy_helper.from_array(arrays[tensor.name], tensor.name))
    return changed, arrays


def inputs_of(session, about):
    random = numpy.random.default_rng(7)
    made = {}
    for port in session.inputs:
        entry = about.get(port.name, {})
        shape = [1 if size < 0 else size for size in port.shape]
        if "below" in entry:
            array = random.integers(0, entry["below"], shape)
        elif "bits" in entry:
            numbers = numpy.array([float(n) for n in entry["of"]])[[int(b) for b in entry["bits"]]]
            array = numpy.resize(numbers, shape)
        elif numpy.dtype(port.dtype).kind in "iu":
            array = random.integers(0, 2, shape)
        else:
            array = random.standard_normal(shape)
        made[port.name] = array.astype(port.dtype)
    return made


def is_same(ours, theirs):
    return ours.keys() == theirs.keys() and all(
        ours[name].shape == theirs[name].shape and ours[name].tobytes() == theirs[name].tobytes() for name in ours)


def refused(session, arrays, inputs):
    """Gives the weights to the session. Of those that decide the plan, the names."""
    before = session.run(inputs)
    try:
        session.update_weights(arrays)
        return set()
    except RuntimeError as error:
        assert "change the plan" in str(error), error
    assert is_same(session.run(inputs), before), "a refused update changed results"
    alone = set()
    for name, array in arrays.items():
        try:
            session.update_weights({name: array})
        except RuntimeError as error:
            assert "change the plan" in str(error), error
            alone.add(name)
    return alone


def judge(name, model, about, keywords):
    """A row of the table. Raises AssertionError."""
    weights = {tensor.name for tensor in model.graph.initializer if tensor.data_type in FLOATS}
    row = [name, len(weights)]
    for numerics in ("fast", "exact"):
        options = {"cache": False, "numerics": numerics, **keywords}
        session = ane.Session(model.SerializeToString(), **options)
        inputs = inputs_of(session, about)
        decide = set()
        for seed in (1, 2):
            decide |= refused(session, perturbed(model, weights - decide, seed)[1], inputs)
        row.append(len(decide))
        for seed in (1, 2):
            # The refused have what they had in the file, or what changes nothing.
            changed, arrays = perturbed(model, weights - decide, seed)
            session.update_weights(arrays)
            want = ane.Session(changed.SerializeToString(), **options).run(inputs)
            assert is_same(session.run(inputs), want), f"{numerics}, seed {seed}: other bits"
    return row


def exported(names):
    import json
    folder = SOURCE / "models" / "exported"
    for entry in json.loads((folder / "manifest.json").read_text())["models"]:
        if not names or entry["name"] in names:
            yield entry["name"], onnx.load(str(folder / f"{entry['name']}.onnx")), entry["inputs"], {}


def real(names):
    sys.path.insert(0, str(SOURCE))
    from models import manifest
    entries = [e for e in manifest.entries() if not names or e["name"] in names]
    manifest.fetch(entries)
    for name, path, options in manifest.runs(entries):
        keywords = {key: value for key, value in manifest.keywords(options).items() if value}
        yield name, onnx.load(str(path)), {}, keywords


def main():
    words = sys.argv[2:]
    names = [word for word in words if not word.startswith("--")]
    faults = 0
    print(f"{'model':44} weights  refused: fast exact")
    for name, model, about, keywords in (real if "--real" in words else exported)(names):
        try:
            name, weights, fast, exact = judge(name, model, about, keywords)
            print(f"{name:44} {weights:7} {fast:14} {exact:5}", flush=True)
        except (AssertionError, ValueError, RuntimeError) as error:
            faults += 1
            print(f"{name:44} FAILED: {error}", flush=True)
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
