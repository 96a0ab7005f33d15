"""Runs ONNX's test cases in an unmodified ONNX Runtime with the plugin: a case that passes with the CPU
provider alone must pass with ours.

    plugin_node_cases.py PLUGIN [--every N] [--seed N] [--targets h13,h16] [--verbose]

A case that runs completely on the engine is run again in a session that must not use the CPU provider.
Results on the engine are fp16 and may differ from the CPU's by 2 % of the largest element. Prints a
table. Exit code 1 if a case fails only with ours, or if ONNX Runtime and our report disagree on which
provider runs a node.
"""

import argparse
import pathlib
import random
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import onnx_cases  # noqa: E402
import onnxruntime as ort  # noqa: E402
import plugin  # noqa: E402

ROWS = ("cases", "pass on the CPU alone", "pass with the plugin", "of them on the engine in part",
        "of them on the engine whole", "beyond fp16", "known, of fp16",
        "random", "FAIL with the plugin alone")
# Cases that fail because of the engine's arithmetic, not because of the plugin, and why. An entry whose
# cases pass is an error.
KNOWN = {
    "softmax_large_number": "inputs near 10000, where adjacent fp16 numbers differ by 8",
    "dynamicquantizelinear_expanded": "fp16 quotients near the middle of two steps are rounded to the other step",
}


def feeds(session, inputs):
    if not onnx_cases.can_be_fed(session):
        return None
    return {port.name: value for port, value in zip(session.get_inputs(), inputs)}


def on_cpu(model, inputs):
    """The outputs; None if ONNX Runtime cannot run it or Python cannot pass its inputs."""
    try:
        session = plugin.cpu_session(model)
        fed = feeds(session, inputs)
        return None if fed is None else session.run(None, fed)
    except Exception:  # ONNX Runtime's exceptions have many classes
        return None


class Runner:
    def __init__(self, devices, target, verbose):
        self.devices, self.options, self.verbose = devices, {"target": target}, verbose
        self.count = dict.fromkeys(ROWS, 0)
        self.failures = []
        self.known = set()  # entries of KNOWN that occurred

    def run(self, name, model, inputs, expected):
        self.count["cases"] += 1
        serialized = model.SerializeToString()
        theirs = on_cpu(serialized, inputs)
        if theirs is None:
            return
        self.count["pass on the CPU alone"] += 1
        try:
            made = plugin.Reported(serialized, self.devices, self.options)
            ours = made.session.run(None, feeds(made.session, inputs))
        except Exception as error:
            return self.fail(name, str(error).splitlines()[0][:300])
        if not made.plans and plugin.runs_nodes(made.session):
            return self.fail(name, "no plan was made")
        on_engine = made.engine_nodes() > 0
        word = plugin.assigned(made.session)
        if word is not None and len(word) != made.engine_segments():
            return self.fail(name, f"our report has {made.engine_segments()} segments, ONNX "
                                   f"Runtime {len(word)}")
        if onnx_cases.is_random(model.graph):
            self.count["random"] += 1
        elif not any(onnx_cases.agrees_in_fp16(ours, wanted) for wanted in (theirs, expected)):
            known = [pattern for pattern in KNOWN if pattern in name]
            if on_engine and onnx_cases.beyond_fp16([*inputs, *theirs]):
                self.count["beyond fp16"] += 1
            elif on_engine and known:
                self.count["known, of fp16"] += 1
                self.known.update(known)
                return
            else:
                return self.fail(name, f"other results: {ours} for {theirs}".replace("\n", "")[:300])
        self.count["pass with the plugin"] += 1
        if not on_engine:
            return
        whole = all(plan["summary"]["cpu_nodes"] == 0 for plan in made.plans)
        # With ONNX Runtime 1.23 only one graph of a session is on the engine: a body or the main graph.
        has_bodies = any(a.HasField("g") for node in model.graph.node for a in node.attribute)
        if not whole or (has_bodies and not plugin.NEWER):
            self.count["of them on the engine in part"] += 1
            return
        self.run_whole(name, serialized, inputs, ours)

    def run_whole(self, name, model, inputs, ours):
        try:
            session = plugin.session_of(model, plugin.options_of(self.devices, self.options,
                                                                 whole=True))
            again = session.run(None, feeds(session, inputs))
        except Exception as error:
            return self.fail(name, "without the CPU: " + str(error).splitlines()[0][:300])
        if not onnx_cases.agrees(again, ours, rtol=0):
            return self.fail(name, "other results without the CPU")
        self.count["of them on the engine whole"] += 1

    def fail(self, name, why):
        self.count["FAIL with the plugin alone"] += 1
        self.failures.append(f"{self.options['target']} {name}: {why}")
        if self.verbose:
            print(self.failures[-1], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin")
    parser.add_argument("--every", type=int, default=1, help="a sample: one of so many")
    parser.add_argument("--seed", type=int, default=1, help="which")
    parser.add_argument("--targets", default="h13,h16")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)
    devices = plugin.register(args.plugin)
    if not devices:
        sys.exit("the plugin shows no device")
    choose = random.Random(args.seed)
    runners = [Runner(devices, target, args.verbose) for target in args.targets.split(",")]
    for case in onnx_cases.load_cases():
        if choose.randrange(args.every) != 0:
            continue
        for runner in runners:
            runner.run(case.name, case.model, *case.data_sets[0])
    print(f"ONNX Runtime {ort.__version__}".ljust(34),
          *(runner.options["target"].rjust(7) for runner in runners))
    for row in ROWS:
        print(row.ljust(34), *(str(runner.count[row]).rjust(7) for runner in runners))
    failures = [line for runner in runners for line in runner.failures]
    if args.every == 1 and plugin.NEWER:  # older versions do not run all of them
        for runner in runners:
            failures += [f"known and not met: {name}" for name in KNOWN if name not in runner.known]
    print("\n".join(failures))
    blind = any(runner.count["of them on the engine whole"] == 0 for runner in runners)
    if blind:
        print("nothing ran on the engine")
    return 1 if failures or blind else 0


if __name__ == "__main__":
    sys.exit(main())
