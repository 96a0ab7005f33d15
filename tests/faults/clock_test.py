"""The machine's clock jumps while commands run: forwards, backwards, once, and to and fro. Each time the results
are those of a clock that does not, and nothing hangs.

    clock_test.py ANEMONE CLOCK [--all] [--seed N]
"""

import argparse
import dataclasses
import pathlib
import random
import subprocess
import sys
import tempfile

from work import WORKS, Place, make_inputs

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
NAMES = ("check", "run", "cache-miss", "cache-hit", "compile", "convert", "mlpackage", "report", "diff", "patch", "zoo",
         "train", "resume", "generate")
# The clock, by how much, and whether every other call has the old time.
JUMPS = [("real", DAY, False), ("real", -DAY, False), ("real", 30 * YEAR, False), ("real", -30 * YEAR, False),
         ("real", HOUR, True), ("real", -HOUR, True), ("steady", DAY, False), ("both", DAY, False), ("both", YEAR, True)]


class Clock:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.inputs = self.folder / "in"
        make_inputs(self.inputs)
        self.faults, self.points = [], 0

    def place(self, name):
        return Place(self.folder / name, self.inputs, self.options.anemone)

    def variables(self, clock, **more):
        return {"LD_PRELOAD": self.options.clock, "CLOCK_NAME": clock, "CLOCK_FILE": str(self.folder / "calls"),
                **{name: str(value) for name, value in more.items()}}

    def known(self, work):
        place = self.place("known")
        place.prepare(work)
        done = place.run(work)
        return done.returncode, place.state(), done.stdout

    def jump(self, name, work, known, clock, by, back, at):
        place = self.place("jumps")
        place.prepare(work)
        more = {"CLOCK_BACK": 1} if back else {}
        try:
            done = place.run(work, timeout=120, **self.variables(clock, CLOCK_BY=by, CLOCK_AT=at, **more))
        except subprocess.TimeoutExpired:
            return "hangs"
        self.points += 1
        said = done.stderr.decode(errors="replace")
        # A time limit counts the seconds of the steady clock.
        if "--time-limit" in work.words and clock != "real" and done.returncode == 1:
            errors = [line for line in said.splitlines() if line.startswith("anemone: error: ")]
            return "" if len(errors) == 1 and "time limit" in errors[0] and not place.leftovers() else said
        if name.startswith("zoo") and clock != "real":  # its limit of a model is one, too
            return "" if done.returncode in (0, 1, known[0]) and not place.leftovers() else said
        if done.returncode != known[0]:
            return f"exit code {done.returncode}: {said}"
        if place.state() != known[1]:
            return f"other files: {sorted(set(place.state().items()) ^ set(known[1].items()))}"
        if place.leftovers():
            return f"left {place.leftovers()}"
        # Speeds and times are never less than nothing.
        return "a negative time" if b": -" in done.stdout and b": -" not in known[2] else ""

    def run(self):
        works = {name: WORKS[name] for name in NAMES}
        for name in NAMES:
            if name not in ("report", "diff", "patch", "resume"):
                limit = "--timeout 1000" if name == "zoo" else "--time-limit 1000"
                works[name + " with a limit"] = dataclasses.replace(
                    WORKS[name], words=f"{WORKS[name].words} {limit}")
        chance = random.Random(self.options.seed)
        for name, work in works.items():
            known = self.known(work)
            jumps = JUMPS if self.options.all else chance.sample(JUMPS, 1)
            for clock, by, back in jumps:
                place = self.place("count")
                place.prepare(work)
                place.run(work, **self.variables(clock))
                calls = int((self.folder / "calls").read_text())
                at = sorted({1, *(1 + calls * part // 4 for part in (1, 2, 3))})
                for first in at if self.options.all else [chance.choice(at)]:
                    problem = self.jump(name, work, known, clock, by, back, first)
                    if problem:
                        self.faults.append(f"{name}: {clock} {by:+} s from call {first} of {calls}: {problem}")
                        print(self.faults[-1], flush=True)
        self.with_others()

    def with_others(self):
        """Processes whose clocks differ by years use one cache at the same time: none removes what another one is
        writing, and each has its result."""
        work = WORKS["cache-miss"]
        _, state, _ = self.known(work)
        place = self.place("shared")
        for _ in range(4 if self.options.all else 1):
            place.prepare(work)
            started = []
            for i, by in enumerate((0, DAY, -DAY, YEAR, -YEAR, 0)):
                out = place.out / str(i)
                out.mkdir()
                started.append(subprocess.Popen(
                    place.words(work.words, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    env={**place.environment(work), **self.variables("real", CLOCK_BY=by, CLOCK_AT=1)}))
            for i, process in enumerate(started):
                said = process.communicate(timeout=120)[1].decode()
                self.points += 1
                if process.returncode != 0 or place.state().get(f"{i}/y/y.npy") != state["y/y.npy"]:
                    self.faults.append(f"shared cache, process {i}: {process.returncode} {said}")
            if place.leftovers():
                self.faults.append(f"shared cache: left {place.leftovers()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anemone")
    parser.add_argument("clock")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(parser.parse_args(), folder)
        clock.run()
        print(f"{clock.points} jumps, {len(clock.faults)} without a right answer")
        print("\n".join(clock.faults))
        return 1 if clock.faults else 0


if __name__ == "__main__":
    sys.exit(main())
