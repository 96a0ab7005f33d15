"""The sweep of the guide's table 15.2: where the gradient of a convolution saturates on h13."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import training_models as models  # noqa: E402

TABLE = pathlib.Path(__file__).resolve().parents[1] / "importer" / "training" / "training.json"
# The largest cotangent that passes a width slice at a loss scale of 1 and an input scale of 1: 384
# times it is below 4094 and 512 times it is not.
LARGEST = 9.0


def step(target, input_scale, loss_scale):
    """The gradient of the first of two convolutions with padding: the loss-scaled derivative by
    its output passes a slice that begins inside the width. Returns all gradients."""
    kernel = np.zeros((1, 1, 3, 3), np.float32)
    kernel[0, 0, 1, 1] = 1
    model = models.model_of(
        "(float[1,1,4,8] x, float[1,1,4,8] d) => (float[1] loss) { "
        "a = Conv<pads = [1,1,1,1]>(x, w1) y = Conv<pads = [1,1,1,1]>(a, w2) t = Mul(y, d) "
        "s = ReduceSum<keepdims = 0>(t, axes) loss = Reshape(s, one) }",
        {"w1": kernel, "w2": kernel, "axes": models.shape(0, 1, 2, 3), "one": models.shape(1)})
    trainer = ane.Trainer(model, "output:loss", target, numerics="exact", loss_scale=loss_scale,
                          optimizer="none", train_only="w1,w2")
    session = ane.Session(trainer.step_model(), target, numerics="exact")
    random = np.random.default_rng(1)
    derivatives = random.uniform(0.1, 0.9, (1, 1, 4, 8)) * LARGEST
    derivatives[0, 0, 1, 4] = LARGEST
    feeds = {"x": np.full((1, 1, 4, 8), 0.01, np.float32),
             "d": (input_scale * derivatives).astype(np.float32), "w1": kernel, "w2": kernel}
    made = session.run(feeds)
    return np.concatenate([array.ravel() for name, array in made.items() if "gradient" in name])


class Saturation(unittest.TestCase):
    def test_the_sweep_of_the_guide(self):
        rows = json.loads(TABLE.read_text())["saturation"]["sweep"]
        self.assertEqual(6, len(rows))
        for row in rows:
            gradients = step("h13", row["input_scale"], row["loss_scale"])
            infinite = np.sum(~np.isfinite(gradients))
            print(row["input_scale"], row["loss_scale"], row["result"], infinite)
            self.assertEqual(row["result"] == "saturates", infinite > 0, row)

    def test_later_families_do_not_saturate(self):
        for target in ("h15", "h17"):
            self.assertTrue(np.all(np.isfinite(step(target, 1, 1024))))


if __name__ == "__main__":
    unittest.main()
