"""Fault injection, as SQLite does it: each call that can fail fails once, in turn, over the set of work
of work.py. Each time the command ends with an exit code of docs/interface.md and one line about the
error, leaves no temporary file and no file that is half written, and works again without the fault.

    faults_test.py ANEMONE PRELOAD ORT_TABLE ORT [--all] [--seed N] [--only WORK] [--kinds KIND,...]

Without --all a sample is taken, by the seed. The kind `memory` runs only if --kinds names it: Abseil's
hash maps break if memory runs out while they grow, so it still finds crashes. It takes one allocation for
each call stack (of 12 frames). The registration of ONNX's schemas, which all commands share, is sampled.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from work import ROOT, WORKS, Place, Work, make_inputs

FILES = "open,read,map,write,rename,sync,mkdir,lock,remove,stat,close,process,thread"
# name: what FAULT_CALLS and FAULT_ACTION are, and how many points a sample has for each work.
KINDS = {
    "memory": ("memory", "fail", 3),
    "system": (FILES, "fail", 5),
    "full-disk": ("write,mkdir", "every", 1),
    "no-files": ("open", "every", 1),
    "short": ("read,write", "short", 1),
    "interrupt": ("read,write,lock", "interrupt", 1),
    "runtime": ("runtime", "fail", 2),
    "kill": ("write,rename,mkdir,remove,sync", "kill", 3),
}
START = (Work("check {in}/two/a.onnx"), Work("run {in}/two/a.onnx --policy cpu --threads 1"))
# Libraries that pass a call on: the caller is the first frame that is in none of them.
PASS_ON = re.compile(r"libanemone_preload|/libc\.so|/libstdc\+\+|/ld-linux|/libpthread|/libdl")
# Lines of stderr that are no error: progress, warnings, and messages of ONNX Runtime.
NOTES = re.compile(r"^(anemone: (warning|note)|onnxruntime: |.* \.\.\.$|Error in cpuinfo|cpuinfo)")


@dataclasses.dataclass(frozen=True)
class Known:
    """What a work does without faults: the files before and after it, and its exit code."""
    before: dict
    after: dict
    code: int


class Faults:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.inputs = folder / "in"
        make_inputs(self.inputs)
        fixed = ["setarch", "-R"]  # so that the same call has the same number in each run
        self.wrapper = fixed if subprocess.run([*fixed, "true"], check=False).returncode == 0 else []
        self.random = random.Random(options.seed)
        self.not_ours = collections.Counter()
        self.known = {}  # by work

    def place(self, name):
        return Place(self.folder / name, self.inputs, self.options.anemone, wrapper=self.wrapper)

    def variables(self, place, kind, **more):
        calls, action, _ = KINDS[kind]
        counter = place.folder.with_suffix(".counter")
        counter.write_bytes(bytes(256))
        made = {"LD_PRELOAD": str(self.options.preload), "FAULT_FILE": str(counter), "FAULT_CALLS": calls,
                "FAULT_ACTION": action, **more}
        if kind == "runtime":
            made["ANEMONE_ORT_LIBRARY"] = str(self.options.ort_table)
            made["FAULT_ORT"] = os.environ.get("ANEMONE_ORT_LIBRARY") or str(self.options.ort)
        return made

    def learn(self, name, work):
        """What the work does without faults."""
        place = self.place("known")
        place.prepare(work)
        before = place.state()
        done = place.run(work)
        assert done.returncode in (0, 3), (name, done.stderr)
        self.known[name] = Known(before, place.state(), done.returncode)

    def points(self, work, kind):
        """(number, place) of each call, in the order of the numbers. For memory: one for each stack."""
        place = self.place("count")
        place.prepare(work)
        stacks = place.folder.with_suffix(".stacks")
        stacks.unlink(missing_ok=True)
        recorded = {"FAULT_PLACES": str(stacks)} if kind == "memory" else {}
        variables = self.variables(place, kind, **recorded)
        done = place.run(work, **variables)
        assert done.returncode in (0, 3), done.stderr
        if kind == "memory":
            return [(int(n), where) for n, where in map(str.split, stacks.read_text().splitlines())]
        calls = struct.unpack("q", pathlib.Path(variables["FAULT_FILE"]).read_bytes()[:8])[0]
        return [(n, None) for n in range(1, calls + 1)]

    def fail(self, slot, name, work, kind, at):
        """Lets the call `at` fail. Returns what is wrong, or "", and whether the call was reached."""
        place = self.place(slot)
        place.prepare(work)
        variables = self.variables(place, kind, FAULT_AT=str(at))
        try:
            done = place.run(work, **variables)
        except subprocess.TimeoutExpired:
            return f"hangs at {at}", True
        hits, what = struct.unpack_from("q240s", pathlib.Path(variables["FAULT_FILE"]).read_bytes(), 8)
        if hits == 0:
            return "", False
        what = what.split(b"\0")[0].decode()
        problems = [] if kind == "kill" and done.returncode == -9 else list(self.of_streams(name, done))
        # A folder cannot be emptied without a descriptor.
        may_leave = what.startswith("remove") or kind == "no-files"
        if kind != "kill" and not may_leave and place.leftovers():
            problems.append(f"left {place.leftovers()}")
        problems += self.of_files(name, work, place, done.returncode == self.known[name].code)
        if not problems and (kind != "memory" or at % 8 == 0):
            problems += self.of_the_next_run(name, work, place)
        if problems and kind != "kill" and done.returncode < 0:
            library = self.library_of(slot, work, kind, at)
            if library is not None:
                self.not_ours[library] += 1
                return "", True
        told = "; ".join(problems) and f"{what} at {at}: {'; '.join(problems)}\n{done.stderr.decode()[-500:]}"
        return told, True

    def library_of(self, slot, work, kind, at):
        """Lets the call fail again, and returns who called it if it is not our code. ONNX Runtime's look at
        the processor crashes if /proc or /sys cannot be read; Abseil's hash maps break if memory runs out
        while they grow."""
        place = self.place(slot)
        place.prepare(work)
        said = place.run(work, **self.variables(place, kind, FAULT_AT=str(at), FAULT_TRACE="1")).stderr.decode()
        frames = re.findall(r"^(/[^(\n]*)\([^)\n]*?\+(0x[0-9a-f]+)\)\[0x", said, re.M)
        frames = [(module, offset) for module, offset in frames if not PASS_ON.search(module)]
        if frames and "libonnxruntime" in frames[0][0]:
            return "ONNX Runtime"
        for module, offset in frames[:3]:
            if module != str(self.options.anemone.resolve()):
                break
            names = subprocess.run(["addr2line", "-f", "-C", "-e", module, offset], capture_output=True,
                                   text=True, check=False).stdout
            if "raw_hash_set" in names:
                return "Abseil's hash maps"
        return None

    def of_streams(self, name, done):
        """The exit code is one of those promised, and stderr has one line about an error."""
        if done.returncode == self.known[name].code:
            return
        if done.returncode != 1:
            yield f"exit code {done.returncode}"
        lines = done.stderr.decode(errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("anemone: error: ")]
        if len(errors) != 1 and name != "zoo":  # its errors are in results.jsonl too
            yield f"{len(errors)} lines of errors"
        if any(line not in errors and not NOTES.match(line) for line in lines):
            yield "other lines on stderr"

    def of_files(self, name, work, place, is_done):
        """Each file is as before or as the work makes it, and if the work is done none is missing."""
        known, state = self.known[name], place.state()
        for path, content in state.items():
            is_free = ".tmp" in path or path.startswith("cache/") or re.search(work.leaves, path)
            if not is_free and content not in (known.before.get(path), known.after.get(path)):
                yield f"{path} is neither old nor new"
        missing = [path for path in known.after if path not in state and not path.startswith("cache/")]
        if is_done and missing and not work.leaves.startswith("^zoo"):
            yield f"done without {missing}"

    def of_the_next_run(self, name, work, place):
        known = self.known[name]
        for path in place.out.rglob("*.tmp"):
            os.utime(path, (0, 0))  # as if it had been left long ago
        again = place.run(work)
        # A new folder is written once.
        if again.returncode == 1 and name in ("convert", "mlpackage") and b"not empty" in again.stderr:
            return
        if again.returncode != known.code:
            yield f"the next run: exit code {again.returncode} {again.stderr.decode()[-200:]}"
            return
        state = place.state()
        if name == "train":
            state.pop("kept/metrics.jsonl", None), state.pop("kept/report.html", None)
        wrong = [path for path in state if path in known.after and state[path] != known.after[path]]
        missing = [path for path in known.after if path not in state and not path.startswith("kept/")]
        if wrong or missing or place.leftovers():
            yield f"the next run: wrong {wrong}, missing {missing}, left {place.leftovers()}"

    def chosen(self, points, kind, sampled=False):
        count = KINDS[kind][2]
        if (self.options.all and not sampled) or len(points) <= count:
            return points
        if sampled and self.options.all:
            count = 1000
        return sorted(self.random.sample(points, count))


def main():
    parser = argparse.ArgumentParser()
    for name in ("anemone", "preload", "ort_table", "ort"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--kinds", default=",".join(kind for kind in KINDS if kind != "memory"))
    options = parser.parse_args()
    found, total = [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = Faults(options, pathlib.Path(folder))
        works = {name: work for name, work in WORKS.items() if options.only in (None, name)}
        start = {}
        for name, work in works.items():
            faults.learn(name, work)
        for kind in options.kinds.split(","):
            jobs = []
            if kind == "memory":
                for i, work in enumerate(START):
                    WORKS[f"start-{i}"] = work
                    faults.learn(f"start-{i}", work)
                    new = [(n, where) for n, where in faults.points(work, kind) if where not in start]
                    start.update({where: n for n, where in new})
                    jobs += [(f"start-{i}", n) for n, _ in faults.chosen(new, kind, sampled=True)]
            for name, work in works.items():
                points = faults.points(work, kind)
                if kind == "memory":
                    points = [(n, where) for n, where in points if where not in start]
                    start.update({where: n for n, where in points})
                jobs += [(name, n) for n, _ in faults.chosen(points, kind)]
            slots = [f"slot{i}" for i in range(2)]

            def one(job):
                slot = slots.pop()
                try:
                    return job, faults.fail(slot, job[0], WORKS[job[0]], kind, job[1])
                finally:
                    slots.append(slot)

            hits = 0
            for (name, _), (problem, hit) in pool.map(one, jobs):
                hits += hit
                if problem:
                    found.append(problem)
                    print(f"{kind}, {name}: {problem}", flush=True)
            total += hits
            print(f"{kind}: {hits} of {len(jobs)} faults", flush=True)
        for library, count in faults.not_ours.items():
            print(f"{count} crashes in {library}")
    print(f"{total} faults, {len(found)} without a right answer")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
