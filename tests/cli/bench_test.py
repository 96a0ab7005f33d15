"""What `anemone bench` prints, and its processes."""

import json
import pathlib
import signal
import subprocess
import time
import unittest

import jsonschema

from support import ANEMONE, ROOT, TIMES, CliTest, anemone, product, relu

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "bench.json").read_text())


class Bench(CliTest):
    def measured(self, *words):
        done = anemone("bench", "--json", "--repeat", "2", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def test_times_and_ratios_are_explained(self):
        text = anemone("bench", "--repeat", "2", self.write(relu())).stdout
        self.assertIn(TIMES, text)
        self.assertIn("Below 1x Anemone is faster, or needs less memory", text)
        self.assertIn("ONNX Runtime's library is loaded", text)
        document = self.measured(self.folder / "model.onnx")
        self.assertEqual("software engine on this CPU", document["times_of"])
        plan, = (m for m in document["models"][0]["measures"] if m["name"] == "plan alone")
        self.assertIsNone(plan["ratio"])

    def test_memory_does_not_depend_on_the_models_before(self):
        small, large = self.write(relu(), "small.onnx"), self.write(product(4096), "large.onnx")

        def memory(*paths):
            measures = self.measured(*paths)["models"][-1]["measures"]
            return measures[-1]["anemone"]

        self.assertLess(memory(large, small), memory(small) + 8)
        self.assertGreater(memory(large), memory(small) + 16)

    def test_a_bad_model_among_good_ones(self):
        bad = self.write(b"nonsense", "bad.onnx")
        done = anemone("bench", "--json", "--repeat", "2", bad, self.write(relu()))
        self.assertEqual(1, done.returncode)
        first, second = json.loads(done.stdout)["models"]
        self.assertIn("bad.onnx", first["error"])
        self.expect_error(anemone("bench", "-q", self.folder / "model.onnx", "--dim", "typo=1"),
                          "--dim typo=1", code=2)
        self.assertIn("measures", second)

    def others(self, path):
        """Processes with this model in their command line."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(path).encode() in entry.read_bytes():
                    found.append(entry)
            except OSError:
                pass  # it has ended
        return found

    def until(self, condition):
        for _ in range(200):
            if condition():
                return True
            time.sleep(0.05)
        return False

    def test_no_process_stays_when_it_is_ended(self):
        path = self.write(product(512))
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(ending):
                bench = subprocess.Popen([ANEMONE, "bench", "-q", "--repeat", "1000000", path],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.assertTrue(self.until(lambda: len(self.others(path)) > 1))
                bench.send_signal(ending)
                self.assertEqual(-ending, bench.wait(timeout=10))
                self.assertTrue(self.until(lambda: not self.others(path)))

    def test_a_process_that_is_killed_is_an_error(self):
        path = self.write(product(512))
        bench = subprocess.Popen([ANEMONE, "bench", "-q", "--repeat", "1000000", path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(self.until(lambda: len(self.others(path)) > 1))
        child, = (e for e in self.others(path) if e.parent.name != str(bench.pid)
                  and f"PPid:\t{bench.pid}\n" in (e.parent / "status").read_text())
        subprocess.run(["kill", "-KILL", child.parent.name], check=True)
        _, told = bench.communicate(timeout=10)
        self.assertEqual(1, bench.returncode)
        self.assertIn("was ended by a signal", told)
        self.assertTrue(self.until(lambda: not self.others(path)))


if __name__ == "__main__":
    unittest.main()
