"""`anemone train`: the trained model, checkpoints, a kill and --resume, data, and wrong usage."""

import json
import os
import signal
import subprocess
import sys
import unittest

import jsonschema
import numpy as np
import onnx
from onnx import numpy_helper

from support import ANEMONE, ROOT, CliTest, anemone, environment

sys.path.insert(0, str(ROOT / "tests" / "python"))
import training_models as models  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "train.json").read_text())
LOSS = "cross-entropy:logits:labels"


class Train(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.write(models.layered())
        self.data = self.folder / "digits.npz"
        np.savez(self.data, **models.digits(), unused=np.zeros(3))

    def words(self, *words, loss=LOSS):
        return ["train", self.model, "--data", self.data, "--loss", loss, *words]

    def train(self, *words, code=0):
        done = anemone(*self.words(*words, "--json"))
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def weights(self, path):
        return {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}

    def test_the_loss_falls_and_the_model_is_written(self):
        out = self.folder / "new.onnx"
        document = self.train("--steps", "40", "--lr", "0.01", "-o", out)
        self.assertEqual((40, 40, 4), (document["steps"], len(document["loss"]), document["weights"]))
        self.assertLess(np.mean(document["loss"][-5:]), 0.6 * document["loss"][0])
        self.assertEqual(1, document["plan"]["engine_segments"])
        onnx.checker.check_model(onnx.load(out))
        self.assertTrue(np.any(self.weights(out)["w1"] != self.weights(self.model)["w1"]))
        # The trained model has the loss that training had.
        again = anemone("train", out, "--data", self.data, "--loss", LOSS, "--steps", "1", "--json")
        self.assertLess(json.loads(again.stdout)["loss"][0], 0.7 * document["loss"][0])

    def test_a_folder_has_metrics_and_a_page(self):
        folder = self.folder / "run"
        self.train("--steps", "12", "--checkpoint", folder, "--checkpoint-every", "5")
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(list(range(1, 13)), [line["step"] for line in lines])
        page = (folder / "report.html").read_text()
        self.assertIn('<svg viewBox="0 0 720 300"', page)
        self.assertNotIn("http", page)
        again = anemone(*self.words("--steps", "12", "--checkpoint", folder))
        self.assertEqual(1, again.returncode)
        self.assertIn("has a checkpoint; give --resume", again.stderr)

    def test_lines_of_metrics_that_are_damaged_are_removed(self):
        folder = self.folder / "run"
        self.train("--steps", "2", "--checkpoint", folder)
        metrics = folder / "metrics.jsonl"
        first, second = metrics.read_text().splitlines()
        for damaged in ("", "{", "[1]", '{"step": 1}', '{"step": "1", "loss": 1, "seconds": 1}',
                        '{"step": 1, "loss": 1, "seconds": "x"}'):
            metrics.write_text(f"{damaged}\n{first}\n{damaged}\n{second}\n{damaged}")
            self.train("--steps", "2", "--checkpoint", folder, "--resume")
            self.assertEqual([first, second], metrics.read_text().splitlines(), damaged)
        metrics.unlink()
        self.train("--steps", "3", "--checkpoint", folder, "--resume")

    def test_killed_and_resumed_training_has_the_same_bits(self):
        words = ["--steps", "60", "--shuffle", "--seed", "3", "--accumulate", "2",
                 "--checkpoint-every", "7"]
        whole = self.folder / "whole.onnx"
        expected = self.train(*words, "-o", whole)
        folder, out = self.folder / "run", self.folder / "resumed.onnx"
        metrics = folder / "metrics.jsonl"
        process = subprocess.Popen(
            [str(ANEMONE), *map(str, self.words(*words, "--checkpoint", folder, "-q"))],
            env=environment(), stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if metrics.exists() and metrics.read_text().count("\n") >= 16:
                os.kill(process.pid, signal.SIGKILL)
                break
        self.assertEqual(-signal.SIGKILL, process.wait())
        resumed = self.train(*words, "--checkpoint", folder, "--resume", "-o", out)
        self.assertEqual(expected["loss"], resumed["loss"])
        for name, weight in self.weights(whole).items():
            np.testing.assert_array_equal(weight, self.weights(out)[name])
        self.assertEqual(60, len(metrics.read_text().splitlines()))
        other = anemone(*self.words(*words[:2], "--seed", "4", "--checkpoint", folder, "--resume",
                                    *words[5:]))
        self.assertIn("another order of samples", other.stderr)
        other = anemone(*self.words("--optimizer", "sgd", "--checkpoint", folder, "--resume"))
        self.assertIn("of other training options", other.stderr)

    def test_five_chains_of_five_fresh_processes(self):
        """Orion's table 7: a step of a chain is a process of its own; chains diverged on the device."""
        self.model = self.write(models.language(), "language.onnx")
        np.savez(self.data, **models.tokens())
        chains = []
        for chain in range(5):
            for step in range(1, 6):
                document = self.train("--lr", "0.003", "--steps", str(step), "--resume", "--checkpoint",
                                      self.folder / str(chain))
            chains.append(document["loss"])
        print("losses of each chain:", chains[0])
        self.assertEqual([chains[0]] * 5, chains)
        self.assertEqual(5, len(chains[0]))
        self.assertLess(chains[0][-1], chains[0][0])

    def test_a_free_batch_is_bound(self):
        model = models.layered()
        for port in [*model.graph.input, *model.graph.output]:
            port.type.tensor_type.shape.dim[0].dim_param = "batch"
        self.model = self.write(model, "free.onnx")
        done = anemone(*self.words("--steps", "2"))
        self.assertEqual(2, done.returncode)
        self.assertIn("training needs sizes for batch", done.stderr)
        self.assertEqual(2, self.train("--steps", "2", "--batch", "16")["steps"])

    def test_settings_of_the_run(self):
        words = ["--steps", "30", "--target", "m2", "--numerics", "exact", "--threads", "1"]
        document = self.train(*words)
        self.assertEqual("h14", document["target"])
        self.assertNotEqual(self.train("--steps", "30")["loss"], document["loss"])
        self.assertIn("OneHot", anemone(*self.words(*words, "-v")).stdout)

    def test_the_step_is_a_model(self):
        step = self.folder / "step.onnx"
        self.train("--steps", "1", "--save-step", step)
        self.assertIn("training/rate", [port.name for port in onnx.load(step).graph.input])
        self.assertEqual(0, anemone("check", step, "-q").returncode)

    def test_an_operator_without_a_gradient_is_named(self):
        self.model = self.write(models.model_of(
            "(float[4,8] x) => (float[4,8] y) { a = MatMul(x, w) y = CumSum(a, axis) }",
            {"w": models.ones(8, 8), "axis": np.array(1, np.int64)}))
        np.savez(self.data, x=np.ones((4, 8)), t=np.ones((4, 8)))
        done = anemone(*self.words(loss="mse:y:t"))
        self.assertEqual(1, done.returncode)
        self.assertIn("node /#1 (CumSum): CumSum has no gradient: it has a forward operation",
                      done.stderr)

    def test_wrong_usage(self):
        done = anemone("train", self.model)
        self.assertEqual(2, done.returncode)
        self.assertIn("--data", done.stderr)
        for words, code, text in [
            (["--resume"], 2, "--checkpoint DIR too"),
            (["--optimizer", "adagrad"], 2, "adagrad"),
            (["--lr", "-1"], 2, "--lr"),
            (["--train-only", "none*"], 2, "matches none of the 4 weights"),
            (["--train-only", ""], 2, "--train-only: want a value, got ''"),
            # A file that cannot be used is not wrong usage (docs/interface.md).
            (["-o", self.model], 1, "is a file that is read"),
            (["-o", self.data], 1, "is used for something else"),
            (["-o", self.folder / "a.onnx", "--save-step", self.folder / "a.onnx"], 1, "something else"),
            (["-o", self.folder / "none" / "a.onnx"], 1, "its folder cannot be written"),
        ]:
            done = anemone(*self.words("--steps", "1", *words))
            self.assertEqual(code, done.returncode, done.stderr)
            self.assertIn(text, done.stderr)
        done = anemone(*self.words("--train-only", "v" * 2000))
        self.assertIn(f"'{'v' * 100}", done.stderr)
        self.assertLess(len(done.stderr), 400)
        done = anemone(*self.words(loss="mse:logits:nothing"))
        self.assertEqual(1, done.returncode)
        self.assertIn("the data has no array 'nothing'", done.stderr)

    def test_data_of_a_folder(self):
        folder = self.folder / "arrays"
        folder.mkdir()
        for name, array in models.digits().items():
            np.save(folder / f"{name}.npy", array)
        expected = self.train("--steps", "5")["loss"]
        self.data = folder
        self.assertEqual(expected, self.train("--steps", "5")["loss"])

    def test_the_preflight_counts_width_slices(self):
        random = models.Random(1)
        self.model = self.write(models.model_of(
            "(float[4,1,8,8] x) => (float[4,2,8,8] y) { a = Conv<pads = [1,1,1,1]>(x, w1) "
            "y = Conv<pads = [1,1,1,1]>(a, w2) }",
            {"w1": random.weight(2, 1, 3, 3), "w2": random.weight(2, 2, 3, 3)}))
        np.savez(self.data, x=np.ones((4, 1, 8, 8)), t=np.ones((4, 2, 8, 8)))
        for target, is_told in (("h13", True), ("h14", True), ("h15", False), ("h17", False)):
            done = anemone(*self.words("--steps", "1", "--target", target, loss="mse:y:t"))
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(is_told, "inside the width" in done.stderr, target + done.stderr)
            self.assertEqual(is_told, "lower --loss-scale" in done.stderr, target)

    def test_data_and_losses_that_are_not_numbers(self):
        data = models.digits()
        data["x"][77, 0, 2, 3] = np.nan
        np.savez(self.data, **data)
        done = anemone(*self.words("--steps", "8"))
        self.assertEqual(1, done.returncode)
        self.assertIn("array 'x': sample 77 has a NaN", done.stderr)
        data["x"][77, 0, 2, 3] = np.inf  # in step 3 of batches of 32
        np.savez(self.data, **data)
        done = anemone(*self.words("--steps", "8"))
        self.assertEqual(0, done.returncode)
        self.assertIn("step 3: the loss is nan; the batch has samples 64, 65, 66, 67, ...;", done.stderr)
        self.assertNotIn("-nan", done.stdout + done.stderr)
        losses = self.train("--steps", "8")["loss"]
        self.assertEqual([2], [i for i, loss in enumerate(losses) if loss is None])

    def test_losses_that_stay_not_finite_are_an_error(self):
        """Whoever reads the exit code alone would use these weights."""
        output = self.folder / "trained.onnx"
        for steps, told in (("100", "step 22: the loss was not finite in 21 of 22 steps"),
                            ("4", "step 4: the loss was not finite in 3 of 4 steps")):
            done = anemone(*self.words("--steps", steps, "--lr", "1e30", "--output", output))
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(f"{told}, so the weights are not written; lower --lr", done.stderr)
            self.assertFalse(output.exists())
        done = anemone(*self.words("--lr", "1e300"))
        self.assertEqual(2, done.returncode)
        self.assertIn("learning rate 1e+300: want a number from 0 to 3.4e38", done.stderr)

    def test_gradients_that_exceed_fp16_are_told(self):
        random = models.Random(3)
        self.model = self.write(models.model_of(
            "(float[4,8] x) => (float[4,2] y) { y = MatMul(x, w) }", {"w": random.weight(8, 2)}))
        np.savez(self.data, x=np.ones((4, 8)), t=np.full((4, 2), 100.0))
        words = ["--steps", "3", "--lr", "0.0001"]
        done = anemone(*self.words(*words, loss="mse:y:t"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("step 1: the scaled gradient of the weight 'w' exceeds fp16", done.stderr)
        self.assertIn("lower the loss scale from 1024", done.stderr)
        self.assertIn("gradients exceeded fp16 in 3 of 3 steps", done.stderr)
        self.assertEqual("", anemone(*self.words(*words, "-q", loss="mse:y:t")).stderr)
        done = anemone(*self.words(*words, "--loss-scale", "16", loss="mse:y:t"))
        self.assertNotIn("fp16", done.stderr)

    def test_a_checkpoint_may_have_all_steps(self):
        folder = self.folder / "run"
        self.train("--steps", "4", "--checkpoint", folder)
        done = anemone(*self.words("--steps", "3", "--checkpoint", folder, "--resume"))
        self.assertEqual(0, done.returncode)
        self.assertIn("already has 4 steps; with --steps 3 nothing is left to train", done.stderr)

    def test_a_checkpoint_with_another_byte_is_refused(self):
        """It was used: weights and moments may have any bits."""
        folder = self.folder / "run"
        self.train("--steps", "2", "--checkpoint", folder)
        file = folder / "checkpoint.safetensors"
        whole = file.read_bytes()
        for at in (len(whole) - 1, len(whole) - 50, len(whole) // 2, whole.index(b'"runs"') + 8):
            changed = bytearray(whole)
            changed[at] ^= 1
            file.write_bytes(changed)
            done = anemone(*self.words("--steps", "3", "--checkpoint", folder, "--resume"))
            self.expect_error(done, "checkpoint.safetensors': its checksum does not fit its contents")
        file.write_bytes(whole)
        self.train("--steps", "3", "--checkpoint", folder, "--resume")

    def test_files_of_a_checkpoint_that_are_pipes(self):
        """Opening them would wait for ever."""
        for name in ("metrics.jsonl", "report.html"):
            for words in ([], ["--resume"]):
                with self.subTest(name=name, words=words):
                    folder = self.folder / f"{name}{len(words)}"
                    folder.mkdir()
                    os.mkfifo(folder / name)
                    done = anemone(*self.words("--steps", "1", "--checkpoint", folder, *words), timeout=30)
                    self.expect_error(done, f"{name}': is a pipe that nobody reads")

    def test_damaged_and_compressed_data(self):
        whole = self.data.read_bytes()
        for length in (0, 3, 30, 100, len(whole) // 2, len(whole) - 1):
            self.data.write_bytes(whole[:length])
            done = anemone(*self.words())
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn("digits.npz", done.stderr)
        for at in range(0, len(whole), max(1, len(whole) // 40)):
            changed = bytearray(whole)
            changed[at] ^= 0xFF
            self.data.write_bytes(changed)
            self.assertIn(anemone(*self.words("--steps", "1")).returncode, (0, 1))
        np.savez_compressed(self.data, **models.digits())
        self.assertIn("not savez_compressed", anemone(*self.words()).stderr)


if __name__ == "__main__":
    unittest.main()
