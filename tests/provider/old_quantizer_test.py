"""Models of several makers, dynamically quantized as ONNX Runtime's quantizer did up to version 1.8
(old_quantizer.py) and as it does today. All multiplications must be on the engine. The result must agree
with ONNX Runtime's on the same file, within the error of rounding the activations, which Anemone does not
do. Prints a line for each. Models of models/manifest.json that are not on this machine are listed.

    old_quantizer_test.py ANEMONE SOURCE_FOLDER
"""

import logging
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

import old_quantizer

ROOT = pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "models"))
import manifest  # noqa: E402

# The share of multiplications on the engine, and the least cosine.
SHARE, LIKENESS = 0.99, 0.985
EXPORTED = {"vit_torchscript": "PyTorch, TorchScript", "mobilevit_dynamo": "PyTorch, Dynamo"}
FETCHED = {"ppocr_cls": "PaddlePaddle", "magika": "Keras"}


def models():
    """Tuples of a name, a file and the options that bind it."""
    for name, maker in EXPORTED.items():
        yield f"{name} ({maker})", ROOT / "models" / "exported" / f"{name}.onnx", []
    for entry in manifest.entries():
        if entry["name"] not in FETCHED:
            continue
        path = manifest.path_of(entry)
        if path.exists():
            yield f"{entry['name']} ({FETCHED[entry['name']]})", path, manifest.options(entry)
        else:
            print(f"not on this machine: {entry['name']}")


def spelled(path, folder):
    """Tuples of a spelling and a file."""
    model = onnx.load(path)
    for name, spelling in old_quantizer.SPELLINGS.items():
        made = folder / "old.onnx"
        onnx.save(old_quantizer.quantized(model, spelling), made)
        yield name, made
    made = folder / "today.onnx"
    quantize_dynamic(path, made, weight_type=QuantType.QInt8, reduce_range=True)
    yield "today", made


def run(program, path, options):
    words = [program, "run", "--json", "--compare", "--tolerance", f"cosine={LIKENESS}", *options, path]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return result["plan"]["engine_macs_share"], [output["cosine"] for output in result["outputs"]]


def main():
    program = sys.argv[1]
    logging.disable(logging.WARNING)  # hides the quantizer's advice
    failed = 0
    for name, path, options in models():
        with tempfile.TemporaryDirectory() as folder:
            for spelling, made in spelled(path, pathlib.Path(folder)):
                share, cosines = run(program, made, options)
                print(f"{name}, {spelling}: {share} of MACs, cosine {min(cosines):.6f}")
                if share is None or share < SHARE or min(cosines) < LIKENESS:
                    failed += 1
                    print(f"FAILED {name}, {spelling}: want {SHARE} of MACs and cosine {LIKENESS}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
