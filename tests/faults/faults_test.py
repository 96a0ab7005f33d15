"""Fault injection, as SQLite does it: each call that can fail fails once, in turn, over the set of work
of work.py. Each time the program ends with an exit code of docs/interface.md and one line about the
error, leaves no temporary file and no file that is half written, and works again without the fault.

    faults_test.py ANEMONE PRELOAD ORT_TABLE ORT LIBRARY_HOST PLUGIN_HOST PLUGIN [--all] [--count N] [--seed N]
                   [--only WORK,...] [--kinds KIND,...] [--jobs N]

Without --all a sample is taken, by the seed. With --all, of allocations one is taken for each call stack
(of 12 frames), and at most N of each work; a table of the faults is printed.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import queue
import random
import re
import struct
import subprocess
import sys
import tempfile

from work import HOSTS, WORKS, Place, make_inputs

FILES = "open,read,map,write,rename,sync,mkdir,lock,remove,stat,close,process,thread"
# name: what FAULT_CALLS and FAULT_ACTION are, and how many points a sample has for each work.
KINDS = {
    "new": ("new", "fail", 1),
    "memory": ("memory", "fail", 1),
    "system": (FILES, "fail", 3),
    "full-disk": ("write,mkdir", "every", 1),
    "no-files": ("open", "every", 1),
    "short": ("read,write", "short", 1),
    "interrupt": ("read,write,lock", "interrupt", 1),
    "runtime": ("runtime", "fail", 1),
    "kill": ("write,rename,mkdir,remove,sync", "kill", 2),
}
# Libraries that pass a call on: the caller is the first frame that is in none of them.
PASS_ON = re.compile(r"libanemone_preload|/libc\.so|/libstdc\+\+|/ld-linux|/libpthread|/libdl")
# Other libraries that do not survive each fault (docs/faults.md).
OTHERS = {"libonnxruntime.so": "ONNX Runtime", "libplist": "libplist"}
OTHERS_IN_HOSTS = {"raw_hash_set": "Abseil's hash maps", "RegisterOnnxOperatorSetSchema": "ONNX's list of operators",
                   "~basic_json": "nlohmann's JSON", "json_value::destroy": "nlohmann's JSON"}
# Lines of stderr that are no error: progress, warnings, and messages of ONNX Runtime and ONNX.
NOTES = re.compile(r"^(anemone: (warning|note)|onnxruntime: |.* \.\.\.$|Error in cpuinfo|cpuinfo|Schema error|$)")


@dataclasses.dataclass(frozen=True)
class Known:
    """What a work does without faults: for each file the contents that it may have, the files that it
    leaves, and its exit code."""
    allowed: dict
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
        self.seen = set()  # call stacks of allocations
        self.known = {}  # by work

    def place(self, name):
        programs = {"library": self.options.library_host, "plugin": self.options.plugin_host}
        return Place(self.folder / name, self.inputs, self.options.anemone, self.wrapper, programs)

    def variables(self, place, kind, **more):
        calls, action, _ = KINDS[kind]
        counter = place.folder.with_suffix(".counter")
        counter.write_bytes(bytes(256))
        made = {"LD_PRELOAD": str(self.options.preload), "FAULT_FILE": str(counter), "FAULT_CALLS": calls,
                "FAULT_ACTION": action, **more}
        if kind == "runtime":
            for name in ("ANEMONE_ORT_LIBRARY", "ANEMONE_PLUGIN"):
                made |= {name: str(self.options.ort_table), name.replace("ANEMONE", "FAULT"): os.environ[name]}
        return made

    def learn(self, name, work):
        """What the work does without faults, for which it needs no network."""
        place = self.place("known")
        allowed = collections.defaultdict(set)

        def allow():
            for path, content in place.state().items():
                allowed[path].add(content)

        for words in work.between:
            place.prepare(work)
            assert place.run(work, words).returncode == 0, (name, words)
            allow()
        place.prepare(work)
        allow()
        done = place.run(work)
        assert done.returncode in (0, 3), (name, done.stderr)
        allow()
        self.known[name] = Known(allowed, place.state(), done.returncode)
        place.prepare(work)
        variables = self.variables(place, "system", FAULT_CALLS="network")
        place.run(work, **variables)
        assert self.calls(variables) == 0, f"{name} uses a network"

    def calls(self, variables):
        """How many calls were counted."""
        return struct.unpack("q", pathlib.Path(variables["FAULT_FILE"]).read_bytes()[:8])[0]

    def points(self, work, kind):
        """The number of each call. With --all, of allocations one for each call stack."""
        place = self.place("count")
        place.prepare(work)
        stacks = place.folder.with_suffix(".stacks")
        stacks.unlink(missing_ok=True)
        by_stack = self.options.all and kind in ("new", "memory")
        variables = self.variables(place, kind, **({"FAULT_PLACES": str(stacks)} if by_stack else {}))
        done = place.run(work, **variables)
        assert done.returncode in (0, 3), done.stderr
        if not by_stack:
            return range(1, 1 + self.calls(variables))
        lines = stacks.read_text().splitlines() if stacks.exists() else []
        found = {where: int(n) for n, where in map(str.split, lines)}
        new = [n for where, n in found.items() if where not in self.seen]
        self.seen.update(found)
        return new

    def chosen(self, work, kind):
        points = self.points(work, kind)
        most = KINDS[kind][2]
        if self.options.all:
            most = self.options.count if kind in ("new", "memory") else len(points)
        return sorted(self.random.sample(points, min(most, len(points))))

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
        every = KINDS[kind][1] == "every"
        problems = [] if kind == "kill" and done.returncode == -9 else list(self.of_streams(name, work, done, every))
        # A folder cannot be emptied without a descriptor.
        may_leave = what.startswith("remove") or kind == "no-files"
        if kind != "kill" and not may_leave and place.leftovers():
            problems.append(f"left {place.leftovers()}")
        problems += self.of_files(name, work, place, done.returncode == self.known[name].code)
        # An allocation that fails ends the command as `kill` does, which tries the next run each time.
        if not problems and (kind not in ("new", "memory") or at % 8 == 0):
            problems += self.of_the_next_run(name, work, place)
        # A host goes on in the process in which another library has failed.
        if problems and kind != "kill" and (done.returncode < 0 or work.program):
            library = self.library_of(slot, work, kind, at)
            if library is not None:
                self.not_ours[library] += 1
                return "", True
        told = "; ".join(problems) and f"{what} at {at}: {'; '.join(problems)}\n{done.stderr.decode()[-500:]}"
        return told, True

    def library_of(self, slot, work, kind, at):
        """Lets the call fail again, and returns whose code made it if it is not ours (docs/faults.md)."""
        place = self.place(slot)
        place.prepare(work)
        said = place.run(work, **self.variables(place, kind, FAULT_AT=str(at), FAULT_TRACE="1")).stderr.decode()
        frames = re.findall(r"^(/[^(\n]*)\([^)\n]*?\+(0x[0-9a-f]+)\)\[0x", said, re.M)
        frames = [(module, offset) for module, offset in frames if not PASS_ON.search(module)]
        for part, library in OTHERS.items():
            if frames and part in frames[0][0]:
                return library
        if "Fatal glibc error" in said or "for thread-local data: ABORT" in said:
            return "the C library"
        for module, offset in frames[:12] if work.program else ():
            names = subprocess.run(["addr2line", "-f", "-i", "-C", "-e", module, offset], capture_output=True, text=True,
                                   check=False).stdout
            for part, library in OTHERS_IN_HOSTS.items():
                if part in names:
                    return library
        return None

    def of_streams(self, name, work, done, every):
        """The exit code is one of those promised, and stderr has one line about an error."""
        if done.returncode == self.known[name].code:
            return
        # A host ends with 5 if its second try failed too.
        if done.returncode != 1 and not (every and work.program and done.returncode == 5):
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
            # A file that cannot be read early can lead to other settings, and so to another key in the cache.
            is_free = ".tmp" in path or path.startswith("cache/") and path not in known.allowed
            if not is_free and not re.search(work.partial, path) and content not in known.allowed[path]:
                yield f"{path} is neither old nor new"
        missing = [path for path in known.after if path not in state and not re.search(work.partial, path)
                   and not path.startswith("cache/")]
        if is_done and missing:
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


def table(hits, works):
    """A row for each work, a column for each kind, in Markdown."""
    kinds = [kind for kind in KINDS if any((work, kind) in hits for work in works)]
    rows = [["work", *kinds], ["---"] * (len(kinds) + 1)]
    rows += [[work, *(str(hits[work, kind]) for kind in kinds)] for work in works]
    rows.append(["all", *(str(sum(hits[work, kind] for work in works)) for kind in kinds)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser()
    for name in ("anemone", "preload", "ort_table", "ort", "library_host", "plugin_host", "plugin"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("ANEMONE_ORT_LIBRARY", str(options.ort))
    os.environ["ANEMONE_PLUGIN"] = str(options.plugin)
    hits, found = collections.Counter(), []
    works = {**WORKS, **HOSTS}
    if options.only:
        works = {name: works[name] for name in options.only.split(",")}
    slots = queue.SimpleQueue()
    for i in range(options.jobs):
        slots.put(f"slot{i}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        faults = Faults(options, pathlib.Path(folder))
        for name, work in works.items():
            faults.learn(name, work)

        def one(job):
            slot = slots.get()
            try:
                return job, faults.fail(slot, job[0], works[job[0]], *job[1:])
            finally:
                slots.put(slot)

        for kind in options.kinds.split(","):
            jobs = [(name, kind, at) for name, work in works.items() for at in faults.chosen(work, kind)]
            for (name, _, _), (problem, hit) in pool.map(one, jobs):
                hits[name, kind] += hit
                if problem:
                    found.append(problem)
                    print(f"{kind}, {name}: {problem}", flush=True)
            print(f"{kind}: {sum(hits[name, kind] for name in works)} of {len(jobs)} faults", flush=True)
        for library, count in faults.not_ours.items():
            print(f"{count} faults that {library} does not survive")
    if options.all:
        print(table(hits, works))
    print(f"{hits.total()} faults, {len(found)} without a right answer")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
