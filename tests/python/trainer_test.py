"""ane.Trainer: small models on the engine, compared with ONNX Runtime on the same step in fp32."""

import pathlib
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import training_models as models  # noqa: E402

CROSS_ENTROPY = "cross-entropy:logits:labels"
# Model, data, loss, keywords, steps.
TASKS = {
    "layered": (models.layered, models.digits, CROSS_ENTROPY, {"lr": 0.01}, 80),
    "sgd": (models.layered, models.digits, CROSS_ENTROPY, {"optimizer": "sgd", "lr": 0.1}, 80),
    "convolutional": (models.convolutional, models.digits, CROSS_ENTROPY, {"lr": 0.01}, 100),
    "transformer": (models.transformer, models.sequences, "mse:y:target", {"lr": 0.003}, 60),
    "gated": (models.gated, models.vectors, "mse:y:target", {"lr": 0.003, "optimizer": "adamw"}, 80),
    "language": (models.language, models.tokens, CROSS_ENTROPY, {"lr": 0.003}, 60),
}


def batches(data, batch, count):
    samples = len(next(iter(data.values())))
    for step in range(count):
        chosen = (np.arange(batch) + step * batch) % samples
        yield {name: array[chosen] for name, array in data.items()}


class ByHand:
    """A trainer's step graph, run by `run(feeds)`; the states are passed as arrays."""

    def __init__(self, trainer, run, lr, **keywords):
        self.run, self.keywords, self.lr, self.steps = run, keywords, lr, 0
        names = {port.name for port in trainer.inputs}
        graph = onnx.load_model_from_string(trainer.step_model()).graph
        inputs = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim]
                  for i in graph.input if i.name not in names}
        self.numbers = [name for name in inputs if name in ("training/rate", "training/decay")]
        weights = trainer.weights
        self.state = {}
        for name, shape in inputs.items():
            if name in weights:
                is_pair = f"training/{name}/rest" in inputs
                value = weights[name].astype(np.float16).astype(np.float32) if is_pair else weights[name]
                self.state[name] = value
                if is_pair:
                    self.state[f"training/{name}/rest"] = 1024 * (weights[name] - value)
            elif name not in self.numbers and not name.endswith("/rest"):
                self.state[name] = np.zeros(shape, np.float32)

    def rates(self):
        self.steps += 1
        scale = 1024 if self.keywords.get("master", "pair") == "pair" else 1  # of the rests
        rate = self.lr / 1024  # the default scale of the loss
        if self.keywords.get("optimizer", "adam") != "sgd":
            rate = self.lr * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        values = {"training/rate": scale * rate, "training/decay": scale * self.lr * 0.01}
        return {name: np.array([values[name]], np.float32) for name in self.numbers}

    def step(self, feeds):
        made = self.run({**feeds, **self.state, **self.rates()})
        self.state = {name: made[f"{name}/next"] for name in self.state}
        (loss,) = (value for name, value in made.items()
                   if name != "training/peaks" and not name.endswith("/next"))
        return float(loss[0])


class Fp32(ByHand):
    """The same step graph on ONNX Runtime in fp32, with weights as one number each."""

    def __init__(self, model, loss, lr, **keywords):
        keywords = {**keywords, "master": "fp16"}
        trainer = ane.Trainer(model, loss, lr=lr, **keywords)
        options = ort.SessionOptions()
        options.intra_op_num_threads = keywords.get("threads", 0)
        session = ort.InferenceSession(trainer.step_model(), options, providers=["CPUExecutionProvider"])
        outputs = [output.name for output in session.get_outputs()]
        super().__init__(trainer, lambda feeds: dict(zip(outputs, session.run(outputs, feeds))), lr,
                         **keywords)


class Training(unittest.TestCase):
    def losses(self, task, steps=None, **more):
        make, data, loss, keywords, count = TASKS[task]
        trainer = ane.Trainer(make(), loss, **{**keywords, **more})
        batch = trainer.inputs[0].shape[0]
        return trainer, [trainer.step(feeds) for feeds in batches(data(), batch, steps or count)]

    def check_against_fp32(self, task):
        make, data, loss, keywords, count = TASKS[task]
        trainer, on_engine = self.losses(task)
        reference = Fp32(make(), loss, **keywords)
        batch = trainer.inputs[0].shape[0]
        in_fp32 = [reference.step(feeds) for feeds in batches(data(), batch, count)]
        print(f"{task}: {on_engine[0]:.4f} -> {np.mean(on_engine[-8:]):.4f}, in fp32 "
              f"{np.mean(in_fp32[-8:]):.4f}; {str(trainer).splitlines()[0]}")
        self.assertLess(np.mean(on_engine[-8:]), 0.8 * on_engine[0], task)
        # Within a percent of what the loss came down.
        difference = abs(np.mean(on_engine[-8:]) - np.mean(in_fp32[-8:]))
        self.assertLess(difference, 0.01 * on_engine[0], task)

    def test_layered(self):
        self.check_against_fp32("layered")

    def test_sgd(self):
        self.check_against_fp32("sgd")

    def test_convolutional(self):
        self.check_against_fp32("convolutional")

    def test_transformer(self):
        self.check_against_fp32("transformer")

    def test_gated(self):
        self.check_against_fp32("gated")

    def test_language(self):
        self.check_against_fp32("language")

    def test_states_on_surfaces_have_the_bits_of_arrays_by_hand(self):
        for task, (make, data, loss, keywords, _) in TASKS.items():
            for more in ({}, {"numerics": "exact", "target": "h17"}, {"master": "fp16"}):
                words = {**keywords, **more}
                trainer = ane.Trainer(make(), loss, **words)
                session = ane.Session(trainer.step_model(),
                                      **{k: v for k, v in more.items() if k != "master"})
                by_hand = ByHand(trainer, session.run, **words)
                for feeds in batches(data(), trainer.inputs[0].shape[0], 6):
                    self.assertEqual(by_hand.step(feeds), trainer.step(feeds), (task, more))
                for name, weight in trainer.weights.items():
                    value = by_hand.state[name].astype(np.float64)
                    if f"training/{name}/rest" in by_hand.state:
                        value += by_hand.state[f"training/{name}/rest"] / np.float64(1024)
                    np.testing.assert_array_equal(weight, value.astype(np.float32), task)

    def test_same_bits_again(self):
        for task in TASKS:
            for numerics in ("fast", "exact"):
                first, losses = self.losses(task, 8, numerics=numerics)
                again, same = self.losses(task, 8, numerics=numerics, threads=1)
                self.assertEqual(losses, same, task)
                for name, weight in first.weights.items():
                    np.testing.assert_array_equal(weight, again.weights[name], task)

    def test_targets_differ_by_an_ulp(self):
        """The guide measured at most 1 ulp for an operation between generations (table 15.4)."""
        for task in TASKS:
            for numerics in ("fast", "exact"):
                h13, h17 = (self.losses(task, 20, target=target, numerics=numerics)[1]
                            for target in ("h13", "h17"))
                apart = np.abs(np.subtract(h13, h17)) / np.spacing(np.float16(h13))
                print(f"{task}, {numerics}, h13 and h17: the losses differ by {apart[0]:g} ulp in the first step, "
                      f"by at most {apart.max():g} in 20")
                self.assertLessEqual(apart[0], 0 if numerics == "fast" else 1, task)
                self.assertLessEqual(apart.max(), 0 if numerics == "fast" else 4, task)

    def test_update_on_the_cpu(self):
        trainer, on_cpu = self.losses("layered", 40, update="cpu")
        _, on_engine = self.losses("layered", 40)
        np.testing.assert_allclose(on_cpu, on_engine, rtol=0.05)
        # In fp32 weights are no fp16 numbers.
        weight = trainer.weights["w1"]
        self.assertGreater(np.mean(weight != weight.astype(np.float16)), 0.9)

    def test_accumulated_batches_are_one_batch(self):
        data = models.digits()
        whole = ane.Trainer(models.layered(64), CROSS_ENTROPY, lr=0.01)
        parts = ane.Trainer(models.layered(16), CROSS_ENTROPY, lr=0.01, accumulate=4)
        for feeds in batches(data, 64, 5):
            loss = whole.step(feeds)
            each = [parts.step({n: a[16 * i: 16 * i + 16] for n, a in feeds.items()})
                    for i in range(4)]
            self.assertAlmostEqual(loss, np.mean(each), delta=0.01)
        for name, weight in whole.weights.items():
            np.testing.assert_allclose(parts.weights[name], weight, atol=2e-3)

    def test_clipping_limits_the_step(self):
        before = {i.name: onnx.numpy_helper.to_array(i) for i in models.layered().graph.initializer}
        trainer = ane.Trainer(models.layered(), CROSS_ENTROPY, optimizer="sgd", momentum=0, lr=1,
                              clip=0.25)
        trainer.step(next(batches(models.digits(), 32, 1)))
        moved = np.sqrt(sum(np.sum((trainer.weights[n] - w) ** 2) for n, w in before.items()))
        self.assertAlmostEqual(moved, 0.25, delta=0.005)

    def test_frozen_weights_stay(self):
        trainer = ane.Trainer(models.layered(), CROSS_ENTROPY, train_only=["w2", "b*"])
        trainer.step(next(batches(models.digits(), 32, 1)))
        self.assertEqual({"b1", "w2", "b2"}, set(trainer.weights))
        with self.assertRaisesRegex(ValueError, "train_only: want patterns of names"):
            ane.Trainer(models.layered(), CROSS_ENTROPY, train_only=[])
        saved = onnx.load_model_from_string(trainer.model())
        arrays = {i.name: onnx.numpy_helper.to_array(i) for i in saved.graph.initializer}
        old = {i.name: onnx.numpy_helper.to_array(i) for i in models.layered().graph.initializer}
        np.testing.assert_array_equal(arrays["w1"], old["w1"])
        np.testing.assert_array_equal(arrays["w2"], trainer.weights["w2"])
        self.assertTrue(np.any(arrays["w2"] != old["w2"]))

    def test_lora_matrices(self):
        random = models.Random(11)
        a, b = random.weight(24, 4), models.zeros(4, 24)
        model = models.model_of(
            "(float[16,24] x) => (float[16,24] y) { p = MatMul(x, w) q = MatMul(x, lora_a) r = MatMul(q, lora_b) "
            "y = Add(p, r) }", {"w": random.weight(24, 24), "lora_a": a, "lora_b": b})
        trainer = ane.Trainer(model, "mse:y:target", lr=0.01, train_only="lora_*")
        losses = [trainer.step(feeds) for feeds in batches(models.vectors(), 16, 40)]
        self.assertLess(np.mean(losses[-8:]), 0.9 * losses[0])
        self.assertEqual({"lora_a", "lora_b"}, set(trainer.weights))
        saved = {i.name: onnx.numpy_helper.to_array(i)
                 for i in onnx.load_model_from_string(trainer.model()).graph.initializer}
        frozen = next(i for i in model.graph.initializer if i.name == "w")
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(frozen), saved["w"])
        for name, before in (("lora_a", a), ("lora_b", b)):
            self.assertGreater(np.abs(saved[name] - before).max(), 0.01, name)
        read = {port.name for port in onnx.load_model_from_string(trainer.step_model()).graph.input}
        self.assertNotIn("w", read)  # it stays a constant

    def test_initializers_that_are_inputs(self):
        model = models.layered()
        for tensor in model.graph.initializer:
            if tensor.name in ("w1", "b2"):
                model.graph.input.append(onnx.helper.make_tensor_value_info(
                    tensor.name, tensor.data_type, tensor.dims))
        trainer = ane.Trainer(model, CROSS_ENTROPY, train_only="w*")
        self.assertEqual({"x", "labels"}, {port.name for port in trainer.inputs})
        _, plain = self.losses("layered", 1)
        self.assertEqual(plain[0], trainer.step(next(batches(models.digits(), 32, 1))))

    def test_small_updates_are_kept_by_a_pair(self):
        feeds = next(batches(models.digits(), 32, 1))
        moved = {}
        for master in ("pair", "fp16"):
            trainer = ane.Trainer(models.layered(), CROSS_ENTROPY, lr=1e-5, master=master,
                                  train_only="w1")
            first = trainer.weights["w1"]
            for _ in range(20):
                trainer.step(feeds)
            moved[master] = np.abs(trainer.weights["w1"] - first).mean()
        print("mean move of 20 steps of 1e-5:", moved)
        self.assertGreater(moved["pair"], 1e-4)
        self.assertLess(moved["fp16"], 0.5 * moved["pair"])

    def test_a_pair_begins_with_all_bits_of_the_weights(self):
        trainer = ane.Trainer(models.layered(), CROSS_ENTROPY, lr=0)
        first = trainer.weights
        trainer.step(next(batches(models.digits(), 32, 1)))
        for initializer in models.layered().graph.initializer:
            want = onnx.numpy_helper.to_array(initializer)
            np.testing.assert_allclose(first[initializer.name], want, rtol=2**-20, atol=2**-34)
            np.testing.assert_allclose(trainer.weights[initializer.name], want, rtol=2**-20, atol=2**-34)

    def test_a_checkpoint_goes_on_with_the_same_bits(self):
        _, unbroken = self.losses("convolutional", 6)
        make, data, loss, keywords, _ = TASKS["convolutional"]
        first = ane.Trainer(make(), loss, **keywords)
        feeds = list(batches(data(), 32, 6))
        got = [first.step(feed) for feed in feeds[:3]]
        with tempfile.TemporaryDirectory() as folder:
            first.save_checkpoint(f"{folder}/c.safetensors", {"why": "half"})
            second = ane.Trainer(make(), loss, **keywords)
            self.assertEqual({"why": "half"}, second.load_checkpoint(f"{folder}/c.safetensors"))
            self.assertEqual(3, second.runs)
            got += [second.step(feed) for feed in feeds[3:]]
            self.assertEqual(unbroken, got)
            other = ane.Trainer(models.layered(), loss)
            with self.assertRaisesRegex(RuntimeError, "of another model"):
                other.load_checkpoint(f"{folder}/c.safetensors")
            data = pathlib.Path(folder, "c.safetensors").read_bytes()
            pathlib.Path(folder, "cut.safetensors").write_bytes(data[: len(data) // 2])
            with self.assertRaisesRegex(ValueError, "damaged|ends"):
                second.load_checkpoint(f"{folder}/cut.safetensors")

    def test_the_first_loss_that_is_not_finite_is_a_warning(self):
        trainer = ane.Trainer(models.layered(), CROSS_ENTROPY)
        feeds = next(batches(models.digits(), 32, 1))
        broken = {**feeds, "x": np.full_like(feeds["x"], np.nan)}
        with self.assertWarnsRegex(RuntimeWarning, "step 1: the loss is nan"):
            trainer.step(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainer.step(broken)

    def test_the_first_gradient_that_exceeds_fp16_is_a_warning(self):
        """A user trained with gradients that were cut off at 64, without a word."""
        random = models.Random(3)
        linear = models.model_of("(float[16,4] x) => (float[16,2] y) { y = MatMul(x, w) }",
                                 {"w": random.weight(4, 2)})
        x = np.linspace(0.5, 1.5, 64, dtype=np.float32).reshape(16, 4)
        for numerics in ("fast", "exact"):
            for keywords, target, is_told in [
                ({}, 200, True), ({"loss_scale": 1}, 200, False), ({}, 1, False),
                ({"update": "cpu"}, 200, True), ({"accumulate": 2}, 200, True), ({"accumulate": 2}, 1, False),
                ({"optimizer": "sgd", "clip": 1.0}, 200, True), ({"sanitize": False}, 200, True),
                ({"master": "fp16"}, 200, True),
            ]:
                with self.subTest(numerics=numerics, target=target, **keywords):
                    trainer = ane.Trainer(linear, "mse:y:t", numerics=numerics, **keywords)
                    feeds = {"x": x, "t": np.full((16, 2), target, np.float32)}
                    with warnings.catch_warnings(record=True) as told:
                        warnings.simplefilter("always")
                        self.assertTrue(np.isfinite(trainer.step(feeds)))
                        trainer.step(feeds)
                    texts = [str(w.message) for w in told if "exceeds fp16" in str(w.message)]
                    self.assertEqual(is_told, len(texts) == 1, texts)
                    if is_told:
                        self.assertIn("step 1: the scaled gradient of the weight 'w'", texts[0])

    def test_wrong_arguments(self):
        model = models.layered()
        feeds = next(batches(models.digits(), 32, 1))
        for keywords, words in [
            ({"loss": "mse:nothing:t"}, "with outputs of the model"),
            ({"loss": CROSS_ENTROPY, "optimizer": "adagrad"}, "sgd, adam or adamw"),
            ({"loss": CROSS_ENTROPY, "train_only": "v*"}, "matches none of the 4 weights"),
            ({"loss": CROSS_ENTROPY, "loss_scale": 1e9}, "from 1 to 32768"),
            ({"loss": CROSS_ENTROPY, "lr": float("nan")}, "learning rate nan: want a number from 0 to 3.4e38"),
            ({"loss": CROSS_ENTROPY, "batch": 16}, "batch 16: the model's sizes are fixed; 'x' has 32"),
            ({"loss": "output:logits"}, "more than one element"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ane.Trainer(model, **keywords)
        trainer = ane.Trainer(model, CROSS_ENTROPY)
        with self.assertRaisesRegex(ValueError, "class 10 at element 3 is not one of 0 to 9"):
            labels = feeds["labels"].copy()
            labels[3] = 10
            trainer.step({**feeds, "labels": labels})
        with self.assertRaisesRegex(ValueError, "labels"):
            trainer.step({"x": feeds["x"]})


if __name__ == "__main__":
    unittest.main()
