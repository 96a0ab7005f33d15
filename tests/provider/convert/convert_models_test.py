"""Writes the models of models/manifest.json that are on this machine as netplists, as MIL and as
packages, for an old and a new target, reads them back and runs them; the bits must be the same. Prints
how much was written, and the kinds that were not. --small takes the smallest models; skipped models are
listed."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "models"))
import manifest  # noqa: E402

TARGETS = ("h13", "h16")
FORMATS = ("netplist", "mil", "package")
SMALL = ("light_squeezenet", "ppocr_cls", "silero_vad_16k_op15", "magika")


def file_of(entry):
    """The model, or its copy with random weights if another test wrote it (models/manifest.py)."""
    path = manifest.path_of(entry)
    copies = sorted(path.parent.glob(f"{path.stem}-random*.onnx"))
    return copies[-1] if copies else path


def convert(program, entry, target, form):
    words = [program, json.dumps({**entry, "path": str(file_of(entry))}), target, form]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip() or f"exit code {done.returncode}"
    return json.loads(done.stdout), ""


def listed(counts):
    return "; ".join(f"{count} x {what}" for what, count in sorted(counts.items()))


def main():
    program, sample = sys.argv[1:3]
    failed = there = written = 0
    print(f"{'model':26} {'target':6} {'format':8} written  notes")
    for entry in manifest.entries():
        if sample == "--small" and entry["name"] not in SMALL:
            continue
        if not manifest.path_of(entry).exists():
            print(f"{entry['name']:26} not on this machine (bench/manifest.py fetches it)")
            continue
        there += 1
        for target in TARGETS:
            for form in FORMATS:
                counts, error = convert(program, entry, target, form)
                line = f"{entry['name']:26} {target:6} {form:8} "
                if counts is None:
                    failed += 1
                    print(line + f"FAILED: {error}", flush=True)
                    continue
                written += counts["written"]
                notes = [f"{word}: {listed(counts[word])}" for word in ("missing", "unverified")
                         if counts[word]]
                print(line + f"{counts['written']:3} of {counts['segments']:<3} " + " | ".join(notes),
                      flush=True)
    print(f"{there} models, {written} segments written and read back, {failed} failures")
    return 1 if failed or (there and not written) else 0


if __name__ == "__main__":
    sys.exit(main())
