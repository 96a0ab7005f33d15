#!/usr/bin/env python3
"""Compare the generation of tokens with ONNX Runtime and OpenVINO.

    bench/generate.py [--threads 1,2] [--weights fp16,int4] [--logits all,last] [--prompt N] [--new N] [--repeat N]
                      [--cpu] [--openvino PYTHON]

Decoders with random weights (tests/small_decoder.py; with int4, tests/grouped_decoder.py, the form of ONNX Runtime
GenAI with MatMulNBits) run a prompt and then one token after the other. ONNX Runtime passes the cache by IO binding,
with 4-bit weights in buffers that past and present share; OpenVINO keeps it as state. Each contestant is a process of
its own. They take turns, --repeat rounds of a prompt and its new tokens while the others wait, and the best round of
each counts. Ratios above 1: Anemone is faster, or needs less memory.
--logits all: the model is as exporters write it, with logits of all tokens. Anemone's generate() computes those of the
last token only, as it reads no others; the other two compute what the model says. last: the model itself takes the last
token before its last product, so that all three compute the same logits. --cpu: the processor's time counts, for a machine
that others use; only with one thread. --openvino: a Python with the packages openvino, onnx and numpy; by default the
one that runs this. With --new above 100, "last/16th" is the time of the last tokens relative to that of tokens near
the 16th.
Build the target python_package first.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
OURS, ORT, OPENVINO = "anemone", "onnxruntime", "openvino"


def tokens_of(count):
    return [i * 37 % 1000 + 1 for i in range(count)]


class Anemone:
    def __init__(self, path, threads, longest):
        sys.path.insert(0, str(ROOT / "build" / "release" / "python"))
        # The parts of generate(), so that the prompt is timed alone.
        from onnxruntime_ep_ane import _anemone, _models

        settings = _models.settings_of(_anemone.SESSION, "m1", {"threads": threads})
        self.generator = _anemone.load_generator(os.fsencode(path), settings)

    def start(self, prompt):
        self.generator.start(prompt, 0, 0, 1, 1, 0)
        self.generator.next()  # chooses from the prompt's logits, as the others do in start()

    def next(self):
        self.generator.next()


class Ported:
    """A model whose inputs are made here: names, and the arrays of a step."""

    def __init__(self, names, longest):
        import numpy

        self.numpy, self.names, self.longest = numpy, set(names), longest

    def start(self, prompt):
        self.past = 0
        self.reset()
        self.token = self.step(prompt)

    def next(self):
        self.token = self.step([self.token])

    def arrays(self, tokens):
        numpy, end = self.numpy, self.past + len(tokens)
        made = {"input_ids": numpy.array([tokens], numpy.int64), "attention_mask": numpy.ones((1, end), numpy.int64),
                "position_ids": numpy.arange(self.past, end, dtype=numpy.int64)[None],
                "beam_idx": numpy.zeros(1, numpy.int32)}
        return {name: made[name] for name in made if name in self.names}


class OnnxRuntime(Ported):
    def __init__(self, path, threads, longest):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.ort, self.session = ort, ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        super().__init__([port.name for port in self.session.get_inputs()], longest)
        self.caches = [port for port in self.session.get_inputs() if port.name.startswith("past")]
        self.shares = "total_sequence_length" in self.session.get_outputs()[1].shape

    def reset(self):
        size = self.longest if self.shares else 0
        self.held = {port.name: self.ort.OrtValue.ortvalue_from_numpy(
            self.numpy.zeros((1, port.shape[1], size, port.shape[3]), self.numpy.float32)) for port in self.caches}

    def step(self, tokens):
        binding = self.session.io_binding()
        for name, array in self.arrays(tokens).items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("logits")
        for name, value in self.held.items():
            binding.bind_ortvalue_input(name, value)
            present = name.replace("past_key_values", "present")
            if self.shares:
                binding.bind_ortvalue_output(present, value)
            else:
                binding.bind_output(present)
        self.session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
        if not self.shares:
            self.held = dict(zip(self.held, outputs[1:]))
        self.past += len(tokens)
        return int(outputs[0].numpy()[0, -1].argmax())


class OpenVino(Ported):
    def __init__(self, path, threads, longest):
        import openvino as ov
        from openvino._offline_transformations import apply_make_stateful_transformation

        core = ov.Core()
        model = core.read_model(path)
        pairs = {name: name.replace("past_key_values", "present") for port in model.inputs
                 for name in port.names if name.startswith("past")}
        model.reshape({port: [1 if i == 0 else size for i, size in enumerate(port.partial_shape)] if any(
            name in pairs for name in port.names) else port.partial_shape for port in model.inputs})
        apply_make_stateful_transformation(model, pairs)
        self.request = core.compile_model(
            model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                           "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        super().__init__([name for port in self.request.model_inputs for name in port.names], longest)

    def reset(self):
        self.request.reset_state()

    def step(self, tokens):
        made = self.request.infer(self.arrays(tokens))
        self.past += len(tokens)
        return int(made["logits"][0, -1].argmax())


def serve(kind, path, threads, prompt, new, cpu):
    """Answers each line of the input with a round, as a line of JSON: seconds of the prompt and of each new token."""
    clock = time.process_time if cpu else time.perf_counter
    made = {OURS: Anemone, ORT: OnnxRuntime, OPENVINO: OpenVino}[kind](path, threads, prompt + new)
    for _ in sys.stdin:
        times = [clock()]
        made.start(tokens_of(prompt))
        times.append(clock())
        for _ in range(new):
            made.next()
            times.append(clock())
        # Not ru_maxrss, which begins with the peak of the process that started this one.
        peak = re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())
        print(json.dumps({"times": [after - before for before, after in zip(times, times[1:])],
                          "peak_mb": int(peak[1]) / 1024}), flush=True)


def take_last_token(model):
    """Inserts a Gather before the product that computes the logits."""
    from onnx import helper

    nodes = model.graph.node
    product = next(node for node in nodes if "logits" in node.output)
    model.graph.initializer.append(helper.make_tensor("last_token", 7, [1], [-1]))
    taken = helper.make_node("Gather", [product.input[0], "last_token"], ["of_last_token"], axis=1)
    product.input[0] = "of_last_token"
    nodes.insert(list(nodes).index(product), taken)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1


def write_model(kind, path, longest, last):
    sys.path.insert(0, str(ROOT / "tests"))
    import onnx
    from grouped_decoder import grouped_decoder
    from small_decoder import decoder

    if kind == "int4":
        made = grouped_decoder(layers=6, heads=8, groups=2, size=64, vocabulary=4096, longest=longest, wide=4, block=32,
                               accuracy_level=4)
    else:
        made = decoder(layers=6, heads=8, size=64, vocabulary=4096, longest=longest)
    if last:
        take_last_token(made)
    onnx.save(made, path)


class Contestant:
    """A process that waits while the others run; and the best of its rounds."""

    def __init__(self, python, words):
        self.process = subprocess.Popen([python, __file__, "--child", *map(str, words)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, "ANEMONE_PROGRAM_CACHE": ""})
        self.prompt, self.new = words[3:5]
        self.error, self.rounds = None, 0
        self.prefill = self.decode = self.peak_mb = 0
        self.growth = None

    def round(self):
        """Does not count the first one, which compiles."""
        if self.error:
            return
        try:
            print("go", file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.error = (self.process.communicate()[1].strip().splitlines() or ["?"])[-1]
            return
        made = json.loads(line)
        self.peak_mb = made["peak_mb"]
        self.rounds += 1
        if self.rounds == 1:
            return
        first, *steps = made["times"]
        self.prefill = max(self.prefill, self.prompt / first)
        # The median: another process of the machine may hold up a few tokens.
        self.decode = max(self.decode, 1 / statistics.median(steps))
        if self.new > 100:
            self.growth = statistics.median(steps[-16:]) / statistics.median(steps[8:24])

    def end(self):
        if not self.error:
            self.process.communicate()


def row(kind, made, ours):
    if made.error:
        return f"  {kind:12} failed: {made.error}"
    ratios = "" if made is ours or ours.error else (
        f"   anemone: prefill {ours.prefill / made.prefill:.2f}, decode {ours.decode / made.decode:.2f}, "
        f"memory {made.peak_mb / ours.peak_mb:.2f}")
    growth = f", last/16th {made.growth:.2f}" if made.growth else ""
    return (f"  {kind:12} prefill {made.prefill:7.0f} tokens/s, decode {made.decode:6.0f} tokens/s, "
            f"{made.peak_mb:5.0f} MB{growth}{ratios}")


def main():
    if sys.argv[1:2] == ["--child"]:
        kind, path, *numbers = sys.argv[2:]
        return serve(kind, path, *map(int, numbers))
    sys.path.insert(0, str(ROOT))
    from models import manifest

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--weights", default="fp16,int4")
    parser.add_argument("--logits", default="all,last")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=6)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--openvino", default=sys.executable)
    manifest.use_own_python()
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for weights, logits in itertools.product(arguments.weights.split(","), arguments.logits.split(",")):
            path = pathlib.Path(folder) / f"{weights}-{logits}.onnx"
            write_model(weights, path, 2048, logits == "last")
            for threads in arguments.threads.split(","):
                numbers = (path, threads, arguments.prompt, arguments.new, int(arguments.cpu))
                made = {kind: Contestant(arguments.openvino if kind == OPENVINO else sys.executable, (kind, *numbers))
                        for kind in (OURS, ORT, OPENVINO)}
                for _ in range(arguments.repeat + 1):
                    for contestant in made.values():
                        contestant.round()
                for contestant in made.values():
                    contestant.end()
                print(f"{weights}, {threads} threads, prompt of {arguments.prompt}, {arguments.new} new tokens, the model's "
                      f"logits: {logits}")
                for kind, result in made.items():
                    print(row(kind, result, made[OURS]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
