"""Every command of work.py in surroundings that fail: few file descriptors, little memory, a full or
read-only disk, closed streams, interrupts, damaged entries of the cache, many processes on one cache.

    surroundings_test.py ANEMONE PRELOAD
"""

import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from work import WORKS, Place, Work, make_inputs

ANEMONE, PRELOAD = sys.argv.pop(1), sys.argv.pop(1)
MIB = 1 << 20
# Commands that write no files.
WITHOUT_FILES = {
    "bench": Work("bench {in}/net.onnx --repeat 3"),
    "confirm": Work("confirm conv --input 1x8x16x16 --const weight=8x8x1x1 --target all"),
    "units": Work("units --json"),
    "targets": Work("targets --json"),
    "doctor": Work("doctor"),
    "completion": Work("completion bash"),
    "help": Work("help run"),
    "docs": Work("docs options"),
}
ALL = {**WORKS, **WITHOUT_FILES}
# Works that are other ways of a command that has a work of its own name.
OTHER_WAYS = {"external", "cache-miss", "cache-hit", "mlpackage", "resume"}
# How a disk is made so that little, less or nothing can be written to it.
FULL = {
    "4 KiB": "head -c $(($(stat -f -c '%a * %S' {out}) - 4096)) /dev/zero > {out}/filler",
    "16 KiB": "head -c $(($(stat -f -c '%a * %S' {out}) - 16384)) /dev/zero > {out}/filler",
    "read-only": "mount -o remount,ro {out}",
}
# Environments: a wrapper of the command. Each command has its usual result, with no variable that it needs.
ENVIRONMENTS = {
    "no variables": ["env", "-i"],
    "no home": ["env", "-u", "HOME", "-u", "XDG_CACHE_HOME", "TMPDIR=/nonexistent"],
    "a home that is not there": ["env", "HOME=/nonexistent/home", "TMPDIR=/dev/null"],
    "a strange terminal": ["env", "COLUMNS=-1", "TERM=\x1b[31m", "LC_ALL=xx_YY", "TZ=:/etc/passwd"],
    "a mask that hides all files": ["sh", "-c", 'umask 0777; exec "$@"', "sh"],  # root can read them
    "a mask that hides none": ["sh", "-c", 'umask 0; exec "$@"', "sh"],
}
IN_NAMESPACE = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0


class Surroundings(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.inputs = self.folder / "in"
        make_inputs(self.inputs)

    def place(self, name, **options):
        return Place(self.folder / name, self.inputs, ANEMONE, **options)

    def known(self, name):
        work = ALL[name]
        place = self.place("known")
        place.prepare(work)
        return place.run(work).returncode, place.state()

    def check(self, name, place, done, code, may_leave=False):
        """Done, or refused in one line and without temporary files."""
        said = done.stderr.decode(errors="replace")
        errors = [line for line in said.splitlines() if line.startswith("anemone: error: ")]
        self.assertIn(done.returncode, (code, 1), said)
        if done.returncode == 1 and name != "zoo":
            self.assertEqual(1, len(errors), said)
        if not may_leave:
            self.assertEqual([], place.leftovers())

    def limited(self, name, limit, value):
        """Runs the work with a limit of setrlimit()."""
        place = self.place("limited", wrapper=["prlimit", f"--{limit}={value}"])
        unlimited = self.place("limited")
        unlimited.prepare(WORKS[name])
        return place, place.run(WORKS[name])

    def test_every_command_has_a_work(self):
        """A new command gets a row in WORKS or WITHOUT_FILES, so that all tests of this file run it."""
        said = subprocess.run([ANEMONE, "completion", "bash"], capture_output=True, text=True, check=True).stdout
        listed = subprocess.run([ANEMONE, "help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z]+)  ", listed.split("Commands:")[1].split("Options:")[0], re.M)
        self.assertGreater(len(commands), 15)
        for command in commands:
            self.assertIn(command, said)
            self.assertIn(command, {work.words.split()[0] for work in ALL.values()})
        self.assertEqual(set(ALL) - OTHER_WAYS, {*commands, "docs"})
        for name in ALL:
            with self.subTest(name):
                self.assertIn(self.known(name)[0], (0, 3))  # 3: a node is on the CPU

    def test_no_command_uses_a_network(self):
        """Calls of socket() and getaddrinfo() are counted (preload.cc)."""
        counter = self.folder / "calls"
        for name, work in ALL.items():
            with self.subTest(name):
                counter.write_bytes(bytes(256))
                place = self.place("alone")
                place.prepare(work)
                place.run(work, LD_PRELOAD=PRELOAD, FAULT_FILE=str(counter), FAULT_CALLS="network")
                self.assertEqual(0, struct.unpack("q", counter.read_bytes()[:8])[0])

    def test_few_descriptors(self):
        for name in WORKS:
            code, _ = self.known(name)
            for count in (6, 9, 14):
                with self.subTest(name, count=count):
                    place, done = self.limited(name, "nofile", count)
                    # With 6, none is left to list a temporary folder with, so it cannot be removed.
                    self.check(name, place, done, code, may_leave=count == 6)

    def test_little_memory(self):
        for name in ("check", "run", "compile", "convert", "mlpackage", "report", "diff", "patch", "train", "resume",
                     "generate", "zoo"):
            code, _ = self.known(name)
            for mebibytes in (160, 400, 4000):
                with self.subTest(name, mebibytes=mebibytes):
                    place, done = self.limited(name, "as", mebibytes * MIB)
                    self.check(name, place, done, code)

    @unittest.skipUnless(IN_NAMESPACE, "no own mounts here")
    def test_full_and_read_only_disks(self):
        refused = set()
        for options, command in FULL.items():
            for name in ("run", "compile", "convert", "mlpackage", "report", "cache-miss", "patch", "zoo", "train",
                         "resume"):
                with self.subTest(name, options=options):
                    code, after = self.known(name)
                    place = self.place("full")
                    place.prepare(WORKS[name])
                    before = place.state()
                    # What the work needs is on the disk before it is full or read-only.
                    needed, made = place.folder / "needed", place.folder / "made"
                    shutil.copytree(place.out, needed)
                    script = (f"mount -t tmpfs -o size=8m none {place.out} && cp -r {needed}/. {place.out} && "
                              f"{{ {command.format(out=place.out)}; \"$@\" 2>&1; code=$?; cp -r {place.out} {made}; "
                              f"rm -f {made}/filler; exit $code; }}")
                    place.wrapper = ["unshare", "-m", "sh", "-c", script, "sh"]
                    done = place.run(WORKS[name])
                    self.assertIn(done.returncode, (code, 1), done.stdout)
                    if done.returncode != code:
                        refused.add((name, options))
                    self.assertEqual([], list(made.rglob("*.tmp")))
                    made.rename(place.folder / "made-out")
                    shutil.rmtree(place.out)
                    (place.folder / "made-out").rename(place.out)
                    for path, content in place.state().items():
                        if not path.startswith(("zoo/", "kept/", "cache/")):
                            self.assertIn(content, (after.get(path), before.get(path)), path)
        for name in ("convert", "patch", "resume"):
            self.assertIn((name, "read-only"), refused)
            self.assertIn((name, "4 KiB"), refused)

    def test_strange_environments(self):
        for name in ("run", "cache-miss", "compile", "convert", "mlpackage", "report", "patch", "zoo", "train"):
            work, (code, after) = WORKS[name], self.known(name)
            for environment, wrapper in ENVIRONMENTS.items():
                with self.subTest(name, environment=environment):
                    if "umask 0777" in " ".join(wrapper) and os.geteuid() != 0:
                        continue
                    place = self.place("strange")
                    place.prepare(work)
                    # Only these two are needed; `env -i` drops the others.
                    kept = [f"{key}={os.environ[key]}" for key in ("LD_LIBRARY_PATH",) if key in os.environ]
                    kept.append(f"ANEMONE_PROGRAM_CACHE={place.environment(work)['ANEMONE_PROGRAM_CACHE']}")
                    place.wrapper = [*wrapper, *(kept if wrapper[0] == "env" else [])]
                    done = place.run(work)
                    self.assertEqual(code, done.returncode, done.stderr)
                    self.assertEqual(after, place.state())
                    self.assertEqual([], place.leftovers())

    def test_closed_streams(self):
        """A file that is opened then gets the number of the stream, and must not get what is printed."""
        for name, work in ALL.items():
            code, after = self.known(name)
            for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-", ">/dev/full"):
                with self.subTest(name, closed=closed):
                    place = self.place("closed")
                    place.prepare(work)
                    before = place.state()
                    place.wrapper = ["sh", "-c", f'exec "$@" {closed}', "sh"]
                    self.assertIn(place.run(work).returncode, (code, 1))
                    self.assertEqual([], place.leftovers())
                    for path, content in place.state().items():
                        if not path.startswith(("zoo/", "kept/", "cache/")):
                            self.assertIn(content, (after.get(path), before.get(path)), path)

    def test_an_interrupt_ends_each_command(self):
        met = 0
        for name, work in ALL.items():
            code, after = self.known(name)
            for part in (0.3, 0.6, 0.9):
                with self.subTest(name, part=part):
                    place = self.place("interrupted")
                    place.prepare(work)
                    start = time.monotonic()
                    place.run(work)
                    took = time.monotonic() - start
                    place.prepare(work)
                    before = place.state()
                    process = subprocess.Popen(place.words(work.words), stdout=subprocess.DEVNULL,
                                               stderr=subprocess.PIPE, env=place.environment(work))
                    time.sleep(part * took)
                    process.send_signal(signal.SIGINT)
                    said = process.communicate(timeout=60)[1].decode()
                    # A shell tells of a process that SIGINT ended as 130.
                    self.assertIn(process.returncode, (-signal.SIGINT, 130, code), said)
                    met += process.returncode != code
                    self.assertEqual([], place.leftovers())
                    for path, content in place.state().items():
                        if not path.startswith(("zoo/", "kept/", "cache/")):
                            self.assertIn(content, (after[path], before.get(path)), path)
        print(f"{met} interrupts", flush=True)
        self.assertGreater(met, 0)

    def test_an_interrupt_ends_a_command_whose_output_nobody_reads(self):
        """The pipe is full, so each command waits in its first write, however short it is."""
        for name, work in ALL.items():
            with self.subTest(name):
                place = self.place("unread")
                place.prepare(work)
                start = time.monotonic()
                said = place.run(work).stdout
                took = time.monotonic() - start
                self.assertNotEqual(b"", said)
                place.prepare(work)
                reading, writing = os.pipe()
                os.set_blocking(writing, False)
                while True:
                    try:
                        os.write(writing, bytes(select.PIPE_BUF))
                    except BlockingIOError:
                        break
                os.set_blocking(writing, True)
                process = subprocess.Popen(place.words(work.words), stdin=subprocess.DEVNULL, stdout=writing,
                                           stderr=subprocess.PIPE, env=place.environment(work))
                os.close(writing)
                time.sleep(1.5 * took)
                self.assertIsNone(process.poll())
                process.send_signal(signal.SIGINT)
                said = process.communicate(timeout=30)[1].decode()
                os.close(reading)
                # A shell tells of a process that SIGINT ended as 130.
                self.assertIn(process.returncode, (-signal.SIGINT, 130), said)
                self.assertEqual([], place.leftovers())

    def test_damaged_entries_of_the_cache(self):
        work = WORKS["cache-hit"]
        code, after = self.known("cache-hit")
        place = self.place("damaged")
        place.prepare(work)
        entry, = (place.out / "cache").glob("*.anemone")
        whole = entry.read_bytes()
        damages = [whole[:size] for size in (0, 1, 64, len(whole) // 2, len(whole) - 1)]
        for at in range(0, len(whole), max(1, len(whole) // 16)):
            damages.append(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
        for damage in damages:
            entry.write_bytes(damage)
            done = place.run(work)
            self.assertEqual(code, done.returncode, done.stderr)
            self.assertEqual(after["y/y.npy"], place.state()["y/y.npy"])
            self.assertEqual(len(whole), entry.stat().st_size)
        # A clock that jumps: an entry from the future, and one from 1970; and the files of another process,
        # which are removed only if they are old.
        for stamp in (0, 1 << 33):
            os.utime(entry, (stamp, stamp))
            left = place.out / "y" / f"y.npy.anemone-{stamp:016x}.tmp"
            left.write_text("half")
            os.utime(left, (stamp, stamp))
            self.assertEqual(code, place.run(work).returncode)
            self.assertEqual(stamp != 0, left.exists())
            left.unlink(missing_ok=True)

    def test_many_processes_on_one_cache(self):
        work = WORKS["cache-miss"]
        code, after = self.known("cache-miss")
        place = self.place("shared")
        place.prepare(work)
        started = []
        for i in range(8):
            out = place.out / str(i)
            out.mkdir()
            started.append(subprocess.Popen(place.words(work.words, out), env=place.environment(work),
                                            stdout=subprocess.DEVNULL))
        self.assertEqual([code] * 8, [process.wait(120) for process in started])
        state = place.state()
        self.assertEqual([after["y/y.npy"]] * 8, [state[f"{i}/y/y.npy"] for i in range(8)])
        self.assertEqual([], place.leftovers())


if __name__ == "__main__":
    unittest.main()
