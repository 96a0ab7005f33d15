"""Dynamic shapes: --bucket on models with free dimensions, compared with ONNX Runtime at the exact size.

    bucket_test.py ANEMONE SOURCE_FOLDER

The models are in bucket_models.py. For each, sizes around every bucket are run and compared. A case says
whether inputs are padded, or which reason must be given for a program of the exact size.
"""

import itertools
import json
import unittest

import bucket_models
import jsonschema
import numpy
import onnxruntime
from support import ROOT, SANITIZED, CliTest, anemone

OTHER_DIMS = {"batch": 2, "seq": 6, "width": 12}
SCHEMAS = {name: json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
           for name in ("check", "run", "bench")}


def inputs_of(model, dims, random):
    """Arrays for the model: token numbers from 1 on, masks that hide nothing."""
    arrays = {}
    for value in model.graph.input:
        shape = [dims[d.dim_param] if d.dim_param else d.dim_value
                 for d in value.type.tensor_type.shape.dim]
        if value.name == "input_ids":
            arrays[value.name] = random.integers(1, bucket_models.VOCABULARY, shape)
        elif value.name == "attention_mask":
            arrays[value.name] = numpy.ones(shape, numpy.int64)
        else:
            arrays[value.name] = random.standard_normal(shape).astype(numpy.float32)
    return arrays


def words_for(buckets, dims):
    words = [word for name, sizes in buckets.items()
             for word in ("--bucket", f"{name}={','.join(map(str, sizes))}")]
    return words + [word for name, size in dims.items() if name not in buckets
                    for word in ("--dim", f"{name}={size}")]


class Buckets(CliTest):
    def run_on(self, path, arrays, buckets, dims):
        """The output of `run --json`, after comparing with ONNX Runtime on the same arrays."""
        words = words_for(buckets, dims)
        for name, array in arrays.items():
            numpy.save(self.folder / f"{name}.npy", array)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        for name in buckets:
            words += ["--dim", f"{name}={dims[name]}"]
        out = self.folder / "out"
        done = anemone("run", "-q", "--json", "--output-dir", out, path, *words)
        self.assertEqual(0, done.returncode, done.stderr)
        ran = json.loads(done.stdout)
        jsonschema.validate(ran, SCHEMAS["run"])
        self.assertEqual({name: dims[name] for name in buckets}, ran["sizes"])
        reference = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [output.name for output in reference.get_outputs()]
        for name, want in zip(names, reference.run(names, arrays)):
            got = numpy.load(out / f"{name}.npy")
            self.assertEqual(want.shape, got.shape)
            self.assertLess(numpy.abs(got - want).max(), 4e-3 * max(1, numpy.abs(want).max()))
        return ran

    def test_sizes_around_every_bucket(self):
        for make, about, buckets, how in bucket_models.CASES:
            model = make(**about)
            path = self.write(model)
            free = {d.dim_param for value in model.graph.input
                    for d in value.type.tensor_type.shape.dim if d.dim_param}
            tried = [sorted({1, small - 1, small, small + 1, large - 1} - {0})
                     for small, large in buckets.values()]
            for sizes in list(itertools.product(*tried))[::5 if SANITIZED else 1]:
                dims = {name: OTHER_DIMS[name] for name in free} | dict(zip(buckets, sizes))
                with self.subTest(model=make.__name__, about=about, **dims):
                    arrays = inputs_of(model, dims, numpy.random.default_rng(3))
                    ran = self.run_on(path, arrays, buckets, dims)
                    self.check_use(ran, buckets, dict(zip(buckets, sizes)), how)

    def check_use(self, ran, buckets, sizes, how):
        bucket = {name: min(size for size in buckets[name] if size >= sizes[name])
                  for name in sizes}
        fits = bucket == sizes
        self.assertEqual(not fits and how == "padded", ran["padded"])
        self.assertEqual(bucket if how == "padded" else sizes, ran["bucket"])
        if not fits and how != "padded":
            self.assertIn(how, ran["bucket_refusal"])
        else:
            self.assertIsNone(ran["bucket_refusal"])

    def test_masks_of_the_caller(self):
        """Masks that hide elements: inputs are padded only if each row keeps an element."""
        def cut(mask):
            mask[0, 4:] = 0

        def cut_left(mask):
            mask[1, :3] = 0

        def empty(mask):
            mask[1, :] = 0

        buckets, dims = {"seq": [8]}, {"batch": 2, "seq": 6}
        for make, about, change, padded in (
            (bucket_models.encoder, {}, cut, True),
            (bucket_models.encoder, {"pool": "masked mean"}, cut_left, True),
            (bucket_models.encoder, {}, empty, False),
            (bucket_models.encoder_by_where, {}, cut, True),
            (bucket_models.decoder, {"with_mask": True}, cut_left, False),
        ):
            with self.subTest(make=make.__name__, change=change.__name__):
                model = make(**about)
                arrays = inputs_of(model, dims, numpy.random.default_rng(5))
                change(arrays["attention_mask"])
                ran = self.run_on(self.write(model), arrays, buckets, dims)
                self.assertEqual(padded, ran["padded"], ran["bucket_refusal"])
                if not padded:
                    self.assertIn("attention_mask", ran["bucket_refusal"])

    def test_check_says_which(self):
        path = self.write(bucket_models.encoder(pool="mean"))
        words = ("--bucket", "batch=1,2", "--bucket", "seq=4,8", "--target", "h13,h16")
        done = anemone("check", "-q", "--json", path, *words)
        self.assertEqual(0, done.returncode, done.stderr)
        checked = json.loads(done.stdout)
        jsonschema.validate(checked, SCHEMAS["check"])
        plans = checked["models"][0]["targets"]
        self.assertEqual([("h13", b, s) for b in (1, 2) for s in (4, 8)]
                         + [("h16", b, s) for b in (1, 2) for s in (4, 8)],
                         [(p["target"], p["bucket"]["batch"], p["bucket"]["seq"]) for p in plans])
        self.assertEqual({"batch": 1, "seq": 3}, plans[0]["padding"]["at"])
        self.assertFalse(plans[0]["padding"]["proven"])
        self.assertIn("ReduceMean", plans[0]["padding"]["reason"])
        text = " ".join(anemone("check", path, *words).stdout.split())
        self.assertIn("batch=1,seq=4, batch=1,seq=8, batch=2,seq=4, batch=2,seq=8: smaller inputs are run "
                      "with a program compiled for their exact size at batch=1,seq=3, ", text)
        proven = " ".join(anemone("check", self.write(bucket_models.encoder()), *words).stdout.split())
        self.assertIn("batch=2,seq=8: smaller inputs are padded (proven for ", proven)

    def test_buckets_are_one_table(self):
        path = self.write(bucket_models.encoder())
        words = ("--dim", "batch=1", "--bucket", "seq=4,8,16")
        lines = anemone("check", path, *words).stdout.splitlines()
        self.assertRegex(lines[0], r"^M1, 3 sizes: .* of MACs on the engine$")
        self.assertTrue(lines[1].endswith("CPU nodes  sizes"), lines[1])
        self.assertTrue(lines[2].endswith("seq=4, seq=8, seq=16"), lines[2])
        self.assertEqual(1, sum("smaller inputs are padded" in line for line in lines))
        self.assertLess(len(lines), 7, lines)
        lines = anemone("check", path, *words, "--target", "m1,m4").stdout.splitlines()
        self.assertRegex(lines[0], r"^2 targets at 3 sizes: ")
        self.assertTrue(lines[2].endswith("M1, A13, M4, A16 at seq=4, seq=8, seq=16"), lines[2])
        every = anemone("check", path, *words, "-v").stdout
        for size in (4, 8, 16):
            self.assertIn(f"\nseq={size}\nM1: ", every)

    def test_run_and_bench_say_which(self):
        path = self.write(bucket_models.decoder())
        words = (path, "-q", "--bucket", "seq=4,8", "--dim", "batch=1", "--dim", "seq=5")
        self.assertIn("ran seq=5 padded to bucket seq=8", anemone("run", *words).stdout)
        done = anemone("bench", "--json", "--repeat", 2, *words)
        self.assertEqual(0, done.returncode, done.stderr)
        measured = json.loads(done.stdout)
        jsonschema.validate(measured, SCHEMAS["bench"])
        self.assertEqual("h13", measured["models"][0]["target"])
        self.assertEqual(1, measured["models"][0]["engine_segments"])

    def test_what_cannot_be_is_refused(self):
        path = self.write(bucket_models.encoder())
        numpy.save(self.folder / "ids.npy", numpy.ones((1, 9), numpy.int64))
        given = ("--input", f"input_ids={self.folder / 'ids.npy'}")
        bind = ("--dim", "batch=1")
        for words, code, pieces in (
            (("--bucket", "seq"), 2, ["NAME=VALUE"]),
            (("--bucket", "seq=4,x"), 2, ["want an integer from 1", "'x'"]),
            (("--bucket", "seq=0"), 2, ["want an integer from 1"]),
            (("--bucket", "sek=4", *bind), 2, ["--bucket sek=4", "'seq'"]),
            (("--bucket", "seq=4"), 1, ["input_ids", "'batch'", "--dim 'batch=1'"]),
            (("--bucket", "seq=4,8", *bind, *given, "--dim", "seq=9"), 1,
             ["'input_ids', dimension 1 ('seq')", "size 9 is above the largest bucket, 8",
              "--bucket seq=...,9"]),
            (("--bucket", "seq=4,16", *bind, *given, "--dim", "seq=3"), 2,
             ["'input_ids', dimension 1 ('seq')", "has size 9, --dim seq=3 gives another"]),
            (("--bucket", "seq=" + ",".join(map(str, range(1, 70))), *bind), 2,
             ["too many combinations", "at most 64"]),
        ):
            with self.subTest(words=words):
                self.expect_error(anemone("run", "-q", path, *words), *pieces, code=code)
        self.expect_error(anemone("check", path, "--bucket", "seq=4,8,200", *bind),
                          f"{path}: seq=200: the model cannot have this size: node ",
                          "; sizes that fit: seq=", code=2)


unittest.main()
