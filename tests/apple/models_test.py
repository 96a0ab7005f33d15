"""Runs models of models/manifest.json with --device apple on the stand-in: ONNX, plan, netplist or MIL
text, stand-in, surfaces, outputs. The outputs must have the bits of the software device in exact mode.
Prints how many segments were compiled as netplists and how many as MIL. --small takes the smallest
models, --sample N --seed S some of the others; models that are not on this machine are listed. Each model
runs on the chip of each of --targets and on both --routes.

    models_test.py ANEMONE DRIVER STANDIN --small|--all|--sample N [--seed S] [--targets h13,h16]
        [--routes netplist,mil]
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(pathlib.Path(__file__).parent)]
import manifest  # noqa: E402
import standin  # noqa: E402

SMALL = ("silero_vad_16k_op15", "magika", "ppocr_cls")
CHIPS = {"h13": "Apple M1", "h14": "Apple M2", "h15": "Apple M3", "h16": "Apple M4", "h17": "Apple M5",
         "h13g": "Apple M1 Pro", "h16g": "Apple M4 Max"}


def file_of(entry):
    """The model, or its copy with random weights if another test wrote it (models/manifest.py)."""
    path = manifest.path_of(entry)
    copies = sorted(path.parent.glob(f"{path.stem}-random*.onnx"))
    return copies[-1] if copies else path


def compare(options, entry, folder, target, route):
    """(netplists, MIL texts) that were compiled; an exception if the outputs differ."""
    engine = standin.Standin(options.driver, options.standin)
    words = [file_of(entry), *manifest.options(entry), "--target", target, "--route", route, "--json"]
    log = folder / "log"
    log.write_text("")
    outputs = []
    for device, more in (("software", ["--numerics", "exact"]), ("apple", [])):
        out = folder / device
        env = engine.environment(ANEMONE_STANDIN_LOG=str(log), ANEMONE_ANE_TIMEOUT="3000",
                                 ANEMONE_STANDIN_CHIP=CHIPS[target])
        done = standin.run(options.anemone, "run", *words, "--device", device, *more, "--output-dir", out,
                           env=env, timeout=3000)
        if done.returncode != 0:
            raise RuntimeError(f"{device}: {done.stderr.strip() or done.returncode}")
        outputs.append((standin.arrays(out), json.loads(done.stdout)))
    (exact, _), (apple, told) = outputs
    differ = [name for name in exact if exact[name] != apple.get(name)]
    if differ or not exact:
        raise RuntimeError(f"other bits: {', '.join(differ)}")
    routes = log.read_text().split()
    if told["plan"]["engine_segments"] > 0 and not routes:
        raise RuntimeError("no segment was compiled on the device")
    return routes.count("netplist"), routes.count("mil")


def main():
    parser = argparse.ArgumentParser()
    for name in ("anemone", "driver", "standin"):
        parser.add_argument(name)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default="h13")
    parser.add_argument("--routes", default="netplist,mil")
    options = parser.parse_args()
    entries = manifest.entries()
    if not options.all:
        others = [e for e in entries if e["name"] not in SMALL and manifest.path_of(e).exists()]
        chosen = [e for e in entries if options.small and e["name"] in SMALL]
        entries = chosen + random.Random(options.seed).sample(others, min(options.sample, len(others)))
    failed = ran = 0
    print(f"{'model':26} target route     netplists  MIL  seconds")
    for entry in entries:
        if not manifest.path_of(entry).exists():
            print(f"{entry['name']:26} not on this machine (tools/models fetch gets it)")
            continue
        for target in options.targets.split(","):
            for route in options.routes.split(","):
                start, place = time.monotonic(), f"{entry['name']:26} {target:6} {route:9}"
                try:
                    with tempfile.TemporaryDirectory() as folder:
                        netplists, texts = compare(options, entry, pathlib.Path(folder), target, route)
                    ran += 1
                    print(f"{place} {netplists:9} {texts:4} {time.monotonic() - start:8.1f}", flush=True)
                except RuntimeError as error:
                    failed += 1
                    print(f"{place} FAILED: {error}", flush=True)
    print(f"{ran} runs have the same bits, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
