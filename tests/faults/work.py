"""The fixed set of work that the tests of this folder interrupt: small models, and the commands that
read and write them. Every command is deterministic, so what it writes is known byte for byte."""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import small_decoder  # noqa: E402
import small_models  # noqa: E402
import training_models  # noqa: E402


def engine():
    """The network of small_models without the nodes that stay on the CPU."""
    made = small_models.network()
    kept = [node for node in made.graph.node if node.op_type != "Cast"]
    kept[-1].input[0] = "b"
    del made.graph.node[:]
    made.graph.node.extend(kept)
    return made


def make_inputs(folder):
    """Writes the models and arrays that the commands read."""
    folder.mkdir(parents=True)
    onnx.save(small_models.network(), folder / "net.onnx")
    onnx.save(small_models.network(), folder / "apart.onnx", save_as_external_data=True,
              location="apart.bin", size_threshold=0)
    onnx.save(engine(), folder / "engine.onnx")
    np.save(folder / "x.npy", small_models.image())
    np.savez(folder / "new.npz", w=np.random.default_rng(3).standard_normal((8, 3, 3, 3)).astype(np.float32))
    onnx.save(small_decoder.decoder(layers=1, vocabulary=16, longest=32), folder / "decoder.onnx")
    onnx.save(training_models.layered(), folder / "layered.onnx")
    digits = training_models.digits(64)
    np.savez(folder / "digits.npz", **digits)
    (folder / "two").mkdir()
    onnx.save(small_models.relu(), folder / "two" / "a.onnx")
    onnx.save(small_models.chain("Sigmoid", "Cos"), folder / "two" / "b.onnx")


@dataclasses.dataclass(frozen=True)
class Work:
    """A command. {in} is the folder of make_inputs(), {out} an own folder for what it writes."""
    words: str
    program: str = ""    # in place of the command
    before: str = ""     # a command that has run in {out} before
    cache: bool = False  # with a cache of programs in {out}/cache
    again: str = ""      # added to the words if {out} has files already
    between: tuple = ()  # commands that make what the files of {out} may be meanwhile
    partial: str = "^$"  # files that grow, and may be missing although the work is done


TRAIN = "train {in}/layered.onnx --data {in}/digits.npz --loss cross-entropy:logits:labels"
KEPT = " --checkpoint {out}/kept --checkpoint-every 1"
METRICS = r"^kept/metrics\.jsonl$"
WORKS = {
    "check": Work("check {in}/net.onnx --target m1,m4"),
    "external": Work("check {in}/apart.onnx --json"),
    "run": Work("run {in}/net.onnx --input x={in}/x.npy --output-dir {out}/y --compare --threads 1"),
    "cache-miss": Work("run {in}/net.onnx --input x={in}/x.npy --output-dir {out}/y", cache=True),
    "cache-hit": Work("run {in}/net.onnx --input x={in}/x.npy --output-dir {out}/y",
                      before="run {in}/net.onnx --input x={in}/x.npy", cache=True),
    "compile": Work("compile {in}/decoder.onnx --compress int8 -o {out}/compiled.onnx"),
    "convert": Work("convert {in}/net.onnx -o {out}/net.ane"),
    "mlpackage": Work("convert {in}/net.onnx --to mlpackage -o {out}/net.mlpackage"),
    "report": Work("report {in}/net.onnx -o {out}/net.html"),
    "diff": Work("diff {in}/net.onnx {in}/apart.onnx"),
    "patch": Work("patch {out}/net.compiled --weights {in}/new.npz",
                  before="compile {in}/net.onnx -o {out}/net.compiled"),
    # The id of a model, which is the name of its folder, is another one if the model cannot be read.
    "zoo": Work("zoo {in}/two -o {out}/zoo --jobs 1 -q", partial=r"^zoo/(results\.jsonl$|models/)",
                again=" --retry-failed"),
    "train": Work(TRAIN + " --steps 2" + KEPT + " -o {out}/trained.onnx",
                  again=" --resume", between=(TRAIN + " --steps 1" + KEPT,), partial=METRICS),
    "resume": Work(TRAIN + " --steps 3 --resume" + KEPT, before=TRAIN + " --steps 1" + KEPT,
                   between=(TRAIN + " --steps 2 --resume" + KEPT,), partial=METRICS),
    "generate": Work("generate {in}/decoder.onnx --tokens 1,2,3 --max-new 3 --threads 1"),
}

# Programs that use the library and the plugin (host.h). After a try that ends with an error, the next one in
# the same process must succeed.
HOSTS = {
    "library": Work("{in}/net.onnx {in}/x.npy", program="library"),
    "plugin": Work("{in}/engine.onnx {in}/x.npy", program="plugin"),
}

# What differs between two runs of one command: times, random names, dates.
VARIES = [(re.compile(rb'"[a-z_]*(seconds|time|ms|date)[a-z_]*": ?[0-9.e+-]+'), b"TIME"),
          (re.compile(rb"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"), b"UUID")]
# Files whose content is not compared, since it tells of times.
TIMES = re.compile(r"(results\.jsonl|metrics\.jsonl|\.html|\.log|report\.json|entry\.json|manifest\.json)$")


class Place:
    """A folder in which a work runs; `inputs` are shared by all places. `programs` are those of HOSTS."""

    def __init__(self, folder, inputs, command, wrapper=(), programs=None):
        self.folder, self.inputs = pathlib.Path(folder), inputs
        self.programs = {"": command, **(programs or {})}
        self.wrapper = list(wrapper)
        self.out = self.folder / "out"

    def words(self, text, out=None, program=""):
        """The command with the words of `text`, which writes to `out` or {out}."""
        return [*self.wrapper, str(self.programs[program]),
                *text.format(**{"in": self.inputs, "out": out or self.out}).split()]

    def environment(self, work):
        cache = str(self.out / "cache") if work.cache else ""
        return {**os.environ, "ANEMONE_PROGRAM_CACHE": cache, "TMPDIR": str(self.folder), "HOME": str(self.folder)}

    def run(self, work, words=None, timeout=60, **variables):
        """Runs the command of `work`, or `words`, and returns the finished process."""
        text = words or work.words
        begun = ("*/checkpoint.safetensors", "*/results.jsonl")
        if not words and any(any(self.out.glob(pattern)) for pattern in begun):
            text += work.again
        return subprocess.run(self.words(text, program=work.program), capture_output=True, timeout=timeout,
                              env={**self.environment(work), **variables}, stdin=subprocess.DEVNULL)

    def prepare(self, work):
        """Empties the folder and runs what the work needs before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.out.mkdir(parents=True)
        if work.before:
            done = self.run(work, work.before)
            assert done.returncode == 0, done.stderr

    def state(self):
        """The files below {out} with the hashes of their contents."""
        found = {}
        for path in sorted(self.out.rglob("*")):
            name = str(path.relative_to(self.out))
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                for pattern, text in VARIES:
                    content = pattern.sub(text, content)
                content = content.replace(str(self.out).encode(), b"OUT")
                found[name] = "any" if TIMES.search(name) and content else hashlib.sha256(content).hexdigest()
        return found

    def leftovers(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if path.name.endswith(".tmp") or path.parent == self.folder and path != self.out
                      and path.name not in (".cache", ".ses"))  # ONNX Runtime's
