#!/usr/bin/env python3
"""Compare the plugin with the CPU provider of the same ONNX Runtime.

    bench/plugin.py [--rounds N] [--target h13] [MODEL...]

Measures the time to create a session and of its first run; for the plugin also with a filled program
cache, and for the compiled model.

MODEL is a file, or a name from models/manifest.json; the default is all models of the manifest that
are on this machine. Times are the best of N rounds in ms; ratios are to the CPU provider.
"""

import argparse
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "provider" / "ort"), str(ROOT / "models")]
from models import manifest  # noqa: E402

manifest.use_own_python()

import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import plugin  # noqa: E402
import plugin_models  # noqa: E402

LIBRARY = ROOT / "build" / "release" / "libonnxruntime_ane_ep.so"


def timed(make):
    start = time.perf_counter()
    made = make()
    return 1000 * (time.perf_counter() - start), made


def measure(path, entry, devices, target, rounds, folder):
    """Name -> best times in ms, of creating the session and of the first run."""
    best = {}
    compiled = str(folder / "compiled_ctx.onnx")
    cache = str(folder / "cache")

    def plugin_session(model, options, entries=()):
        session_options = plugin.options_of(devices, {"target": target, **options}, threads=0)
        for key, value in entries:
            session_options.add_session_config_entry(key, value)
        return plugin.session_of(model, session_options)

    pathlib.Path(compiled).unlink(missing_ok=True)
    plugin_session(path, {"cache_dir": cache}, [("ep.context_enable", "1"),
                                                ("ep.context_file_path", compiled)])
    makers = {"CPU": lambda: plugin.cpu_session(path, threads=0),
              "plugin": lambda: plugin_session(path, {}),
              "cached": lambda: plugin_session(path, {"cache_dir": cache}),
              "compiled": lambda: plugin_session(compiled, {})}
    for _ in range(rounds):
        for name, make in makers.items():
            took, session = timed(make)
            first, _ = timed(lambda: session.run(None, plugin_models.inputs_of(entry, session)))
            best[name] = tuple(map(min, zip((took, first), best.get(name, (took, first)))))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", default="h13")
    args = parser.parse_args()
    ort.set_default_logger_severity(4)
    devices = plugin.register(LIBRARY)
    entries = {entry["name"]: entry for entry in manifest.entries()}
    names = args.models or [n for n, e in entries.items() if manifest.path_of(e).exists()]
    print(f"ONNX Runtime {ort.__version__}, {args.target}; best of {args.rounds}")
    print(f"{'':26} {'session, ms':>11} {'ratio to the CPU':>32}  {'first run':>12}")
    print(f"{'model':26} {'CPU':>11} {'plugin':>10} {'cached':>10} {'compiled':>10}  {'CPU, ms':>8} "
          f"{'ratio':>7}")
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            path = str(folder / "model.onnx")
            entry = entries.get(name, {})
            onnx.save(plugin_models.bound(entry) if entry else onnx.load(name), path)
            try:
                best = measure(path, entry, devices, args.target, args.rounds, folder)
            except Exception as error:
                print(f"{name:26} skipped: {error}"[:150], flush=True)
                continue
            session, first = best["CPU"]
            ratios = " ".join(f"{best[n][0] / session:10.2f}" for n in ("plugin", "cached", "compiled"))
            print(f"{name:26} {session:11.1f} {ratios}  {first:8.1f} {best['plugin'][1] / first:7.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
