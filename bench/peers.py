#!/usr/bin/env python3
"""Compare the speed and memory of Anemone with ONNX Runtime's CPU provider and OpenVINO, as ratios.

Rows are sorted: the slowest against the better peer comes first. Rows below 1.0 say which kinds of
units take the time. Also says whether each model meets the goals. docs/performance.md explains the columns.

    bench/peers.py [--threads 1,2] [--repeat N] [--exact N] [--errors N] [MODEL...]
    bench/peers.py --fetch      # only download models and OpenVINO to the cache

MODEL is a name of models/manifest.json or make_models.py, a file, a folder that is searched for *.onnx, or
"exported" for models/exported. Without any: the RUNS below and all of make_models.py.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

import numpy  # noqa: E402
import onnx  # noqa: E402

from bench import make_models  # noqa: E402
from bench.text_image import text_image  # noqa: E402

PEERS_BENCH = ROOT / "build" / "release" / "bench" / "peers_bench"
OPENVINO = (ROOT / "bench" / "openvino.txt").read_text().strip()
# The files of the wheel's openvino/libs that the CPU plugin and the ONNX frontend need.
OPENVINO_LIBRARIES = ("libopenvino_c.", "libopenvino.", "libopenvino_intel_cpu_plugin.",
                      "libopenvino_onnx_frontend.", "libtbb.")

# The runs of the manifest that are compared by default, with the models of make_models.py. A
# 3x3-heavy model has at least half of its MACs in dense 3x3 convolutions with stride 1.
RUNS = ("light_resnet50-random", "light_vgg19-random", "light_squeezenet-random",
        "light_densenet121-random", "light_shufflenet-random", "light_inception_v2-random",
        "ppocr_det", "ppocr_rec", "yolov8n")
HEAVY_SHARE = 0.5
PEERS = ("onnxruntime", "openvino")
BLAMED = 4  # kinds of units that are named in a row below 1.0
GOAL, HEAVY_GOAL, GOALS = 1.0, 1.3, {"light_vgg19-random": 1.5}
TEXT_SCALES = {"ppocr_det": 4, "ppocr_rec": 4}  # pixels per dot of a letter
EXACT_GOAL, EXACT_HEAVY_GOAL, EXACT_WITHOUT_TILES_GOAL = 30, 60, 10


def fetch_openvino():
    """Copies the libraries to the folder that OpenVino::DefaultFolder() in openvino.cc returns."""
    folder = manifest.cache_folder().parent / OPENVINO.replace("==", "-")
    if any(folder.glob("libopenvino_c.so*")):
        return
    print(f"bench: fetching {OPENVINO}", file=sys.stderr)
    with manifest.wheel(OPENVINO) as archive:
        names = [name for name in archive.namelist()
                 if name.startswith("openvino/libs/")
                 and pathlib.Path(name).name.startswith(OPENVINO_LIBRARIES)]
        # libopenvino_c comes last: if it exists, the download was complete.
        for name in sorted(names, key=lambda name: "libopenvino_c." in name):
            manifest.take(archive, name, folder / pathlib.Path(name).name)


def files(name):
    """The model files that a name means. None: it is not a file, nor a folder."""
    path = ROOT / "models" / "exported" if name == "exported" else pathlib.Path(name)
    if path.is_dir():
        found = sorted(path.rglob("*.onnx"))
        if not found:
            sys.exit(f"bench/peers.py: error: {path}: no *.onnx in this folder")
        return found
    return [path] if path.suffix == ".onnx" or path.is_file() else None


def models(names):
    """(name, path, options) of each requested model."""
    found = []
    for name in names or [*RUNS, *make_models.MODELS]:
        paths = files(name)
        found += named([name]) if paths is None else [(path.stem, path, []) for path in paths]
    return found


def every_model():
    """(name, path, options) of the models of the manifest and of make_models.py."""
    entries = manifest.entries()
    manifest.fetch(entries)
    return [*manifest.runs(entries), *((name, *make_models.made(name)) for name in make_models.MODELS)]


def named(wanted):
    """The same of names that are not files."""
    entries = [e for e in manifest.entries()
               if any(name.removesuffix("-random") == e["name"] for name in wanted)]
    manifest.fetch(entries)
    found = {name: (path, options) for name, path, options in manifest.runs(entries)
             if name in wanted}
    for name in wanted:
        if name in make_models.MODELS:
            found[name] = make_models.made(name)
        if name not in found:
            sys.exit(f"bench/peers.py: error: no model '{name}'; valid: "
                     + ", ".join([*RUNS, *make_models.MODELS])
                     + ", all models of models/manifest.json, files and folders")
    return [(name, *found[name]) for name in wanted]


def peers_bench(path, *words):
    done = subprocess.run([str(PEERS_BENCH), str(path), "--json", *words], capture_output=True,
                          text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def without_softmax(path, folder):
    """Path of the model without a final Softmax, which would make large differences look small."""
    model = onnx.load(str(path))
    graph, last = model.graph, model.graph.node[-1]
    if last.op_type != "Softmax" or len(graph.output) != 1:
        return path
    graph.output[0].name = last.input[0]
    graph.node.pop()
    cut = pathlib.Path(folder) / "cut.onnx"
    onnx.save(model, str(cut))
    return cut


def errors(name, path, options, count):
    """The errors that peers_bench measures. Models that read text get an image of text."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--repeat", "1", "--no-memory", *options]
        if name in TEXT_SCALES:
            height, width = next(e for e in manifest.entries() if e["name"] == name)["shapes"]["x"][2:]
            image = pathlib.Path(folder) / "text.npy"
            numpy.save(image, text_image(height, width, TEXT_SCALES[name], seed=0))
            words += ["--input", f"x={image}"]
            count = 1
        return peers_bench(without_softmax(path, folder), "--errors", str(count), *words)["errors"]


def measure(name, path, options, threads, arguments):
    first = threads == arguments.threads[0]  # exact mode and errors are measured once per model
    result = peers_bench(path, "--threads", threads, "--repeat", str(arguments.repeat), "--exact",
                         str(arguments.exact if first else 0), *options)
    if arguments.errors and first:
        result["errors"] = errors(name, path, options, arguments.errors)
    if result["speed_median"]["better"] < 1:
        result["blamed"] = blamed(path, options, threads)
    return result


def blamed(path, options, threads):
    """The kinds of units that take most of a run, each with its share and how near it is to the roof."""
    profile = peers_bench(path, "--profile", "--threads", threads, *options)
    whole = profile["seconds"]
    return "; ".join(
        f"{kind['kind']} {100 * kind['seconds'] / whole:.0f} %"
        + (f" at {100 * kind['least_time'] / kind['seconds']:.0f} % of the roof" if kind["least_time"] else "")
        for kind in profile["kinds"][:BLAMED] if kind["seconds"] > 0)


def heavy(result):
    return result["macs_in_3x3"] >= HEAVY_SHARE


def goal_of(name, result):
    return GOALS.get(name, HEAVY_GOAL if heavy(result) else GOAL)


def peers_of(result):
    return [name for name in result["speed_median"] if name != "better"]


def memory_ratio(result, peer):
    memory = result["peak_memory_bytes"]
    return memory["anemone"] / memory[peer]


def print_row(name, result, peers):
    """Prints a row and returns whether speed and memory meet the goals. A peer that does not run
    the model has none."""
    speed, goal = result["speed_median"], goal_of(name, result)
    fast = speed["better"] >= goal
    small = all(memory_ratio(result, peer) < 1 for peer in peers_of(result))

    def cells(value_of):
        return "".join(f" {value_of(peer):12.2f}" if peer in speed else f" {'-':>12}" for peer in peers)

    print(f"{name:26} {result['threads']:7} {result['cpu']:5.2f} "
          f"{100 * result['macs_in_3x3']:5.0f}"
          + cells(lambda peer: speed[peer])
          + f" {speed['better']:8.2f} {result['speed_fastest']['better']:8.2f}"
          f" {result['speed_cpu']['better']:8.2f} {goal:5.1f}"
          + f" {'yes' if fast else 'NO':>4}"
          + cells(lambda peer: memory_ratio(result, peer))
          + f" {'yes' if small else 'NO':>4}", flush=True)
    return fast and small


def print_speed(results, failures):
    met, speeds = [], []
    peers = [peer for peer in PEERS if any(peer in peers_of(result) for _, result in results)]
    for i, (name, result) in enumerate(sorted(results, key=lambda r: r[1]["speed_median"]["better"])):
        if i == 0:
            print(f"{'times as fast as':26} threads   cpu   3x3" + "".join(f" {p:>12}" for p in peers)
                  + "   better  fastest   by cpu  goal  met" + "".join(f" {p + ' mem':>12}" for p in
                  peers) + "  met")
        met.append(print_row(name, result, peers))
        speeds.append(result["speed_median"]["better"])
        if "blamed" in result:
            print(f"{'':26}   {result['blamed']}", flush=True)
    for name, error in failures:
        print(f"{name:26} {error}")
    print(f"{sum(met)} of {len(met) + len(failures)} rows meet the goals; "
          f"{sum(speed >= 1 for speed in speeds)} of {len(speeds)} are at 1.0 or more"
          + (f", geometric mean {statistics.geometric_mean(speeds):.2f}" if speeds else ""))


def print_exact(results):
    print(f"\n{'time of exact / fast mode':26} {'ratio':>7} {'goal':>5}  met  "
          f"{'no tiles':>8} {'goal':>5}  met")
    for name, result in results:
        row = f"{name:26}"
        for key, goal in (("exact_by_fast", EXACT_HEAVY_GOAL if heavy(result) else EXACT_GOAL),
                          ("exact_without_tiles_by_fast", EXACT_WITHOUT_TILES_GOAL)):
            ratio = result[key]
            row += f" {ratio:7.1f} {goal:5} {'yes' if ratio <= goal else 'NO':>4}  "
        print(row.rstrip())


def print_errors(results):
    print(f"\n{'errors':26} {'':28} {'1-cosine':>9} {'max abs':>9} {'of range':>9} {'top-1':>6}")
    for name, result in results:
        for pair, error in result["errors"].items():
            top1 = error["top1_agreement"]
            print(f"{name:26} {pair:28} {1 - error['cosine']:9.2e} {error['max_abs_error']:9.2e} "
                  f"{error['max_rel_error']:9.2e} {'-' if top1 is None else f'{top1:.3f}':>6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2", type=lambda text: text.split(","))
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--exact", type=int, default=0, help="runs in exact mode")
    parser.add_argument("--errors", type=int, default=0,
                        help="number of inputs on which results are compared")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("names", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    fetch_openvino()
    wanted = models(arguments.names)
    if arguments.fetch:
        return
    results, failures = [], []
    work = [(threads, *model) for threads in arguments.threads for model in wanted]
    for i, (threads, name, path, options) in enumerate(work):
        print(f"bench: {i + 1} of {len(work)}: {name}, threads {threads}", file=sys.stderr)
        try:
            results.append((name, measure(name, path, options, threads, arguments)))
        except RuntimeError as error:
            failures.append((name, str(error)))
    print_speed(results, failures)
    if arguments.exact:
        print_exact([(n, r) for n, r in results if "exact_by_fast" in r])
    if arguments.errors:
        print_errors([(n, r) for n, r in results if "errors" in r])
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
