"""Compares what the command says and writes on an emulated Arm with what it does on this machine: the verdicts of
`check --json` on all targets, the files of `convert` in all formats, and the bits of `run` in exact mode. Of small
models, and of those of models/manifest.json in REAL that are on this machine. Skipped without a release build of this
machine (exit code 77).

    arm64_command_test.py ARM_ANEMONE ANEMONE PROJECT
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ARM, HERE, PROJECT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
sys.path.insert(0, str(PROJECT / "models"))
import manifest  # noqa: E402

MODELS = ("bert_dynamo", "focus_dynamo", "mobilevit_torchscript", "swin_torchscript", "llama_past_dynamo")
REAL = ("silero_vad_16k_op15", "magika", "ppocr_cls")
ENVIRONMENT = {**os.environ, "ANEMONE_PROGRAM_CACHE": ""}


def run(anemone, *words):
    done = subprocess.run([anemone, *map(str, words)], capture_output=True, text=True, env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def compare(model, words, folder):
    """Texts of what differs."""
    made, sizes = {}, manifest.without_ranges(words)
    for anemone in (ARM, HERE):
        out = folder / ("arm" if anemone == ARM else "here")
        out.mkdir()
        made[anemone] = {"check": run(anemone, "check", model, *sizes, "--target", "all", "--json")[:2]}
        for form in ("netplist", "mil", "mlpackage"):
            code, _, _ = run(anemone, "convert", model, *sizes, "--to", form, "-o", out / form)
            made[anemone][f"convert to {form}"] = code, files(out / form)
        code, _, told = run(anemone, "run", model, *words, "--numerics", "exact", "--output-dir", out / "outputs")
        assert code == 0, told
        made[anemone]["run"] = code, files(out / "outputs")
    return [what for what in made[ARM] if made[ARM][what] != made[HERE][what]], made[HERE]


def main():
    if not pathlib.Path(HERE).exists():
        print(f"skipped: there is no {HERE}; build the preset release")
        return 77
    models = [(PROJECT / "models" / "exported" / f"{name}.onnx", []) for name in MODELS]
    models += [(manifest.path_of(entry), manifest.options(entry)) for entry in manifest.entries()
               if entry["name"] in REAL and manifest.path_of(entry).exists()]
    failed = 0
    for model, words in models:
        with tempfile.TemporaryDirectory() as folder:
            differ, here = compare(model, words, pathlib.Path(folder))
        failed += bool(differ)
        outputs = here["run"][1]
        print(f"{model.name:40} {'DIFFERS: ' + ', '.join(differ) if differ else 'equal'}; "
              f"{len(outputs)} outputs, exit codes {[code for code, *_ in here.values()]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
