"""A zoo of all models of the repository and ONNX's node cases, killed three times at random, ends with the
table of an unbroken run. Takes some minutes."""

import json
import pathlib
import random
import signal
import subprocess
import time
import unittest

from onnx.backend.test.case.node import collect_testcases

from support import ANEMONE, ROOT, CliTest, environment


class Killed(CliTest):
    def words(self, out):
        return [str(ANEMONE), "zoo", str(self.folder / "cases"), str(ROOT / "models" / "exported"),
                str(ROOT / "models" / "manifest.json"), "-o", str(self.folder / out), "--target", "m1,m4",
                "--jobs", "2", "-q"]

    def lines(self, out):
        read = map(json.loads, (self.folder / out / "results.jsonl").read_text().splitlines())
        return {line["path"]: {**line, "seconds": 0} for line in read}

    def test_it_ends_with_the_same_table(self):
        (self.folder / "cases").mkdir()
        for case in collect_testcases(None):
            if case.model is not None:
                pathlib.Path(self.folder, "cases", f"{case.name}.onnx").write_bytes(case.model.SerializeToString())
        start = time.time()
        subprocess.run(self.words("whole"), env=environment(), check=False)
        took = time.time() - start
        for seed in range(3):
            process = subprocess.Popen(self.words("killed"), env=environment())
            time.sleep(took * random.Random(seed).uniform(0.05, 0.3))
            process.send_signal(signal.SIGKILL)
            process.wait()
        subprocess.run(self.words("killed"), env=environment(), check=False)
        whole = self.lines("whole")
        print(f"{len(whole)} models", flush=True)
        self.assertGreater(len(whole), 300)
        self.assertEqual(whole, self.lines("killed"))


if __name__ == "__main__":
    unittest.main()
