#!/usr/bin/env python3
"""Print how much faster a model is with more threads, against what the machine allows.

    bench/scaling.py [--threads 1,2] [--seconds S] [--rounds N] [--least-ms MS] [--json] [MODEL...]

MODEL is as for bench/peers.py; without any: the models of the manifest and of make_models.py. `N threads`: how many
times as fast a run is as with one thread. `N alone`: N processes at the same time, each with one thread, which share
nothing but the machine: how many times as many runs they make as one. Caches, memory and the clock of the cores limit
both. Models whose run takes less than --least-ms with one thread are left out. The worst comes first.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from bench import peers  # noqa: E402

GOAL = 1.8  # of two threads


def counts():
    """1, 2, 4, ... to the number of cores."""
    cores = len(os.sched_getaffinity(0))
    return sorted({min(2 ** power, cores) for power in range(cores.bit_length() + 1)})


def milliseconds(path, options, seconds, threads, processes):
    """Of a run, in the mean of processes that run at the same time."""
    command = [str(peers.PEERS_BENCH), str(path), "--alone", str(seconds), "--threads", str(threads), *options]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(processes)]
    for process in started:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("it does not run")
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    return statistics.mean(json.loads(process.communicate()[0])["run_ms"] for process in started)


def measure(path, options, arguments):
    """Times by number of threads, and of processes. None: a run is too short."""
    threads, alone = {}, {}
    for _ in range(arguments.rounds):
        for count in arguments.threads:
            time = milliseconds(path, options, arguments.seconds, count, 1)
            threads[count] = min(time, threads.get(count, time))
            if threads[1] < arguments.least_ms:
                return None
            time = time if count == 1 else milliseconds(path, options, arguments.seconds, 1, count)
            alone[count] = min(time, alone.get(count, time))
    return {"threads": {count: threads[1] / time for count, time in threads.items()},
            "alone": {count: count * alone[1] / time for count, time in alone.items()}}


def print_table(rows, counted):
    most = counted[-1]
    print(f"{'times as fast as 1 thread':30}" + "".join(f" {f'{n} threads':>10} {f'{n} alone':>9}" for n in counted))
    for name, row in sorted(rows.items(), key=lambda item: item[1]["threads"][most]):
        print(f"{name:30}" + "".join(f" {row['threads'][n]:10.2f} {row['alone'][n]:9.2f}" for n in counted))
    reached = [row for row in rows.values() if 2 in row["threads"]]
    if reached:
        print(f"{sum(row['threads'][2] >= GOAL for row in reached)} of {len(reached)} reach {GOAL} with 2 threads; "
              f"{sum(row['alone'][2] < GOAL for row in reached)} do not as 2 processes either")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=lambda text: sorted({1, *map(int, text.split(","))}), default=counts())
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least-ms", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    rows, failures = {}, []
    for name, path, options in peers.models(arguments.names) if arguments.names else peers.every_model():
        print(f"bench: {name}", file=sys.stderr)
        try:
            if row := measure(path, options, arguments):
                rows[name] = row
        except RuntimeError as error:
            failures.append(f"{name}: {error}")
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        print_table(rows, [count for count in arguments.threads if count > 1])
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
