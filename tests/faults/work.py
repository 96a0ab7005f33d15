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


def make_inputs(folder):
    """Writes the models and arrays that the commands read."""
    folder.mkdir(parents=True)
    onnx.save(small_models.network(), folder / "net.onnx")
    onnx.save(small_models.network(), folder / "apart.onnx", save_as_external_data=True,
              location="apart.bin", size_threshold=0)
    np.save(folder / "x.npy", small_models.image())
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
    before: str = ""    # a command that has run in {out} before
    cache: bool = False  # with a cache of programs in {out}/cache
    again: str = ""      # added to the words if {out} has files already
    leaves: str = "^$"   # files that may hold less than the whole result: each is of one step or model


TRAIN = "train {in}/layered.onnx --data {in}/digits.npz --loss cross-entropy:logits:labels"
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
    "zoo": Work("zoo {in}/two -o {out}/zoo --jobs 1 -q", leaves="^zoo/", again=" --retry-failed"),
    "train": Work(TRAIN + " --steps 2 --checkpoint {out}/kept --checkpoint-every 1 -o {out}/trained.onnx",
                  again=" --resume", leaves="^kept/"),
    "resume": Work(TRAIN + " --steps 3 --checkpoint {out}/kept --resume --checkpoint-every 1",
                   before=TRAIN + " --steps 1 --checkpoint {out}/kept --checkpoint-every 1", leaves="^kept/"),
    "generate": Work("generate {in}/decoder.onnx --tokens 1,2,3 --max-new 3 --threads 1"),
}

# What differs between two runs of one command: times, random names, dates.
VARIES = [(re.compile(rb'"[a-z_]*(seconds|time|ms|date)[a-z_]*": ?[0-9.e+-]+'), b"TIME"),
          (re.compile(rb"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"), b"UUID")]
# Files whose content is not compared, since it tells of times.
TIMES = re.compile(r"(results\.jsonl|metrics\.jsonl|\.html|\.log|report\.json|entry\.json|manifest\.json)$")


class Place:
    """A folder in which a work runs; `inputs` are shared by all places."""

    def __init__(self, folder, inputs, command, wrapper=()):
        self.folder, self.inputs, self.command = pathlib.Path(folder), inputs, str(command)
        self.wrapper = list(wrapper)
        self.out = self.folder / "out"

    def words(self, text, out=None):
        """The command with the words of `text`, which writes to `out` or {out}."""
        return [*self.wrapper, self.command, *text.format(**{"in": self.inputs, "out": out or self.out}).split()]

    def environment(self, work):
        cache = str(self.out / "cache") if work.cache else ""
        return {**os.environ, "ANEMONE_PROGRAM_CACHE": cache, "TMPDIR": str(self.folder), "HOME": str(self.folder)}

    def run(self, work, words=None, timeout=60, **variables):
        """Runs the command of `work`, or `words`, and returns the finished process."""
        text = words or work.words
        if not words and any(self.out.glob("*/checkpoint.safetensors")) or any(self.out.glob("*/results.jsonl")):
            text += work.again
        return subprocess.run(self.words(text), capture_output=True, env={**self.environment(work), **variables},
                              timeout=timeout, stdin=subprocess.DEVNULL)

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
