"""Session of the Python package as users see it: arrays and other values, sizes, threads, warnings."""

import concurrent.futures
import contextlib
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from support import PackageTest  # noqa: E402


class Arrays(PackageTest):
    def test_types_go_in_and_come_out(self):
        for kind in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                     "float16", "float32", "float64"):
            with self.subTest(kind):
                made = models.identity(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
                x = np.array([[0, 1, 2], [3, 4, 5]], kind)
                y = ane.Session(made).run({"x": x})["y"]
                self.assertEqual(np.dtype(kind), y.dtype)
                np.testing.assert_array_equal(x, y)

    def test_c_types_of_equal_size_are_one_type(self):
        for char, kind in (("l", "int64"), ("q", "int64"), ("L", "uint64"), ("Q", "uint64")):
            with self.subTest(char):
                session = ane.Session(models.identity(helper.np_dtype_to_tensor_dtype(np.dtype(kind))))
                x = np.array([[0, 1, 2], [3, 4, 5]], char)
                np.testing.assert_array_equal(x, session.run({"x": x})["y"])

    def test_bfloat16_by_ml_dtypes(self):
        made = models.identity(TensorProto.BFLOAT16)
        x = np.array([[0, 1.5, -2], [3, 4, 5]], ml_dtypes.bfloat16)
        y = ane.Session(made).run({"x": x})["y"]
        self.assertEqual(x.dtype, y.dtype)
        np.testing.assert_array_equal(x, y)

    def test_types_of_less_than_a_byte_are_packed_between(self):
        for kind in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            with self.subTest(kind):
                dtype = np.dtype(getattr(ml_dtypes, kind))
                tensor = helper.np_dtype_to_tensor_dtype(dtype)
                made = models.model([helper.make_node("Size", ["x"], ["n"])],
                                    [("x", tensor, (3, 3))],
                                    [("x", tensor, (3, 3)), ("n", TensorProto.INT64, ())], (), 25)
                x = np.array([[0, 1, -2], [1, -1, -2], [0, 0, 1]], np.float32)
                x = (abs(x) if kind.startswith("u") else x).astype(dtype)
                y = ane.Session(made).run({"x": x})["x"]
                self.assertEqual(x.dtype, y.dtype)
                np.testing.assert_array_equal(x, y)
                np.testing.assert_array_equal(x.astype(np.float32), y.astype(np.float32))

    def test_a_cast_reads_int4_as_it_is_packed(self):
        made = models.model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
                            [("x", TensorProto.INT4, (3,))], [("y", TensorProto.FLOAT, (3,))])
        x = np.array([-8, 7, -1], ml_dtypes.int4)
        np.testing.assert_array_equal([-8, 7, -1], ane.Session(made).run({"x": x})["y"])

    def test_complex_numbers_pass(self):
        made = models.model([helper.make_node("Relu", ["r"], ["s"])],
                            [("x", TensorProto.COMPLEX64, (2, 3)), ("r", TensorProto.FLOAT, ())],
                            [("x", TensorProto.COMPLEX64, (2, 3)), ("s", TensorProto.FLOAT, ())])
        x = np.array([[0, 1j, 2], [3, 4, 5 - 1j]], np.complex64)
        outputs = ane.Session(made).run({"x": x, "r": np.float32(1)})
        np.testing.assert_array_equal(x, outputs["x"])

    def test_strings(self):
        made = models.identity(TensorProto.STRING)
        x = np.array([["a", "", "ü\0"], ["b", "c", "d"]], object)
        y = ane.Session(made).run({"x": x})["y"]
        self.assertEqual(x.tolist(), y.tolist())

    def test_scalars_empty_strided_big_endian_and_unaligned_arrays(self):
        scalar = ane.Session(models.relu(())).run({"x": -1.0 * np.ones((), np.float32)})["y"]
        self.assertEqual(((), 0), (scalar.shape, scalar))
        big = ane.Session(models.relu(())).run({"x": np.array(3, ">f4")})["y"]
        self.assertEqual(((), 3), (big.shape, big))
        none = models.model([helper.make_node("NonZero", ["x"], ["y"])],
                            [("x", TensorProto.FLOAT, (2, 3))], [("y", TensorProto.INT64, None)])
        empty = ane.Session(none).run({"x": np.zeros((2, 3), np.float32)})["y"]
        self.assertEqual(((2, 0), np.int64), (empty.shape, empty.dtype))
        x = np.arange(256, dtype=np.float32).reshape(1, 8, 8, 4).transpose(0, 3, 1, 2)
        session = ane.Session(models.relu())
        np.testing.assert_array_equal(x, session.run({"x": x})["y"])
        np.testing.assert_array_equal(x, session.run({"x": x.astype(">f4")})["y"])
        constant = np.ascontiguousarray(x)
        constant.flags.writeable = False
        np.testing.assert_array_equal(x, session.run({"x": constant})["y"])
        unaligned = np.frombuffer(b"\0" + constant.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
        np.testing.assert_array_equal(x, session.run({"x": unaligned})["y"])

    def test_an_output_is_the_callers_own(self):
        """Also if it is the input itself, or a constant of the model."""
        weights = np.arange(6, dtype=np.float32).reshape(2, 3)
        made = models.model([helper.make_node("Identity", ["x"], ["y"]),
                             helper.make_node("Identity", ["w"], ["z"])],
                            [("x", TensorProto.FLOAT, (2, 3))],
                            [("y", TensorProto.FLOAT, (2, 3)), ("z", TensorProto.FLOAT, (2, 3))],
                            [("w", weights)])
        session = ane.Session(made)
        x = np.ones((2, 3), np.float32)
        for _ in range(2):
            outputs = session.run({"x": x})
            np.testing.assert_array_equal(weights, outputs["z"])
            for output in outputs.values():
                output[:] = 7
        np.testing.assert_array_equal(np.ones((2, 3)), x)

    def test_an_output_outlives_its_session(self):
        y = ane.Session(models.relu()).run({"x": np.ones((1, 4, 8, 8), np.float32)})["y"]
        self.assertTrue((y == 1).all())

    def test_wrong_arrays_are_named(self):
        session = ane.Session(models.relu())
        for x, told in [({}, "input 'x': missing"), ({"x": np.ones(3)}, "input 'x': want float32"),
                        ({"z": np.ones(3, np.float32)}, "input 'z': the model has no such input; it has 'x'")]:
            with self.assertRaisesRegex(ValueError, told):
                session.run(x)

    def test_values_that_are_no_arrays_are_named(self):
        session = ane.Session(models.relu((1, 2)))
        give = r"; give np\.asarray\(\.\.\., 'float32'\)$"
        for x, told in ((None, "got None"), (1.5, "got a float, of which NumPy makes float64"),
                        ([[1.0, 2.0]], "got a list, of which NumPy makes float64 1x2"),
                        ([[1], [1, 2]], "got a list: .*inhomogeneous.*"),
                        ("text", "got a str, of which NumPy makes string"),
                        ({"a": 1}, "got a dict of objects"),
                        (np.array([None]), "got a ndarray of objects")):
            with self.subTest(str(x)), self.assertRaisesRegex(
                    ValueError, f"^input 'x': want float32 1x2, {told}{give}"):
                session.run({"x": x})
        y = session.run({"x": np.asarray([[1.0, -2.0]], "float32")})["y"]
        np.testing.assert_array_equal([[1, 0]], y)

    def test_python_values_of_the_right_type_are_taken(self):
        bools = ane.Session(models.identity(TensorProto.BOOL)).run({"x": [[True, False, True]] * 2})["y"]
        np.testing.assert_array_equal([[True, False, True]] * 2, bools)
        texts = ane.Session(models.identity(TensorProto.STRING)).run({"x": [["a", "b", "c"]] * 2})["y"]
        self.assertEqual([["a", "b", "c"]] * 2, texts.tolist())
        with self.assertRaisesRegex(ValueError, "want string 2x3, got a list of objects; .* 'str'"):
            ane.Session(models.identity(TensorProto.STRING)).run({"x": [["a", None, "c"]] * 2})

    def test_names_of_inputs_are_checked_first(self):
        made = models.model([helper.make_node("Sum", ["image", "mask", "past"], ["y"])],
                            [(name, 1, (1, 4)) for name in ("image", "mask", "past")], [("y", 1, (1, 4))])
        session = ane.Session(made)
        x = np.ones((1, 4), np.float32)
        for inputs, told in (
                ({"imge": x, "mask": x, "past": x},
                 "input 'imge': the model has no such input; did you mean 'image'? "
                 "It has 'image', 'mask', 'past'"),
                ({"image": x, "mask": x, "past": x, "0": [x]},
                 "input '0': the model has no such input; it has 'image', 'mask', 'past'"),
                ({"image": x}, "input 'mask': missing; give a value of type float32 1x4 for it; "
                               "missing too: 'past'")):
            with self.assertRaises(ValueError) as caught:
                session.run(inputs)
            self.assertEqual(told, str(caught.exception))


    def test_an_initializer_that_is_an_input_is_a_constant(self):
        made = models.model([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "my b"], ["y"])],
                            [(name, 1, shape) for name, shape in (("x", (1, 4)), ("w", (4, 2)), ("my b", (2,)))],
                            [("y", 1, (1, 2))],
                            [("w", np.ones((4, 2), np.float32)), ("my b", np.array([1, 2], np.float32))])
        x, w, b = np.ones((1, 4), np.float32), 2 * np.ones((4, 2), np.float32), np.zeros(2, np.float32)
        session = ane.Session(made)
        self.assertEqual(["x"], [port.name for port in session.inputs])
        np.testing.assert_array_equal([[5, 6]], session.run({"x": x})["y"])
        for name, array in (("w", w), ("my b", b)):
            with self.assertRaises(ValueError) as caught:
                session.run({"x": x, name: array})
            self.assertEqual(
                f"input {name!r}: it is a constant, because it is an initializer of the model; load the model "
                f"with overridable=[{name!r}] to keep it an input", str(caught.exception))
        session.update_weights({"w": w})
        np.testing.assert_array_equal([[9, 10]], session.run({"x": x})["y"])
        kept = ane.Session(made, overridable=["my b"])
        self.assertEqual([("x", False), ("my b", True)], [(port.name, port.has_default) for port in kept.inputs])
        np.testing.assert_array_equal([[5, 6]], kept.run({"x": x})["y"])
        np.testing.assert_array_equal([[4, 4]], kept.run({"x": x, "my b": b})["y"])
        every = ane.Session(made, overridable="all")
        self.assertEqual(["x", "w", "my b"], [port.name for port in every.inputs])
        np.testing.assert_array_equal([[8, 8]], every.run({"x": x, "w": w, "my b": b})["y"])
        with self.assertRaisesRegex(ValueError, r"overridable=\['v'\]: .*; there are: "):
            ane.Session(made, overridable=["w", "v"])
        warning, = (w for w in ane.check(made).models[0].targets[0].warnings if w.rule == "constant-input")
        self.assertIn("2 initializers that are also inputs are constants", warning.message)
        self.assertIn("a run that gives one needs overridable=['w'], or overridable='all'", warning.remedy)
        reported = ane.check(made, overridable="all").models[0].targets[0].warnings
        self.assertNotIn("constant-input", [w.rule for w in reported])


@contextlib.contextmanager
def folder_with_cache():
    with tempfile.TemporaryDirectory() as folder, \
            unittest.mock.patch.dict(os.environ, {"ANEMONE_PROGRAM_CACHE": str(pathlib.Path(folder) / "cache")}):
        yield folder


class Sessions(PackageTest):
    def test_what_it_tells_of_itself(self):
        session = ane.Session(models.network(), "M1", threads=1)
        self.assertEqual([ane.Port("x", "float32", (1, 3, 16, 16), False, "tensor", "float32")],
                         session.inputs)
        self.assertEqual("y", session.outputs[0].name)
        self.assertEqual(5, session.plan.summary.nodes)
        self.assertIn("5 nodes: ", repr(session))

    def test_buckets(self):
        buckets = {"n": [2, 4]}
        session = ane.Session(models.relu(["n", 3]), buckets=buckets)
        self.assertEqual((-1, 3), session.inputs[0].shape)
        for rows in (1, 2, 3):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float16)
            y = session.run({"x": x.astype(np.float32)})["y"]
            np.testing.assert_array_equal(np.maximum(x, 0), y)
        with self.assertRaisesRegex(ValueError, r"largest bucket, 4; .*buckets=\{'n': \[\.\.\., 5\]\}"):
            session.run({"x": np.zeros((5, 3), np.float32)})
        checked = ane.check(models.relu(["n", 3]), buckets=buckets).models[0].targets
        self.assertEqual([2, 4], [plan.bucket.n for plan in checked])
        self.assertEqual(checked, session.plans)

    def test_free_dimensions(self):
        session = ane.Session(models.relu(["n", 3]), max_plans=2)
        self.assertEqual((-1, 3), session.inputs[0].shape)
        self.assertEqual(["n"], session.plan.summary.free_dimensions)
        for rows in (1, 2, 3, 1):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float16)
            y = session.run({"x": x.astype(np.float32)})["y"]
            np.testing.assert_array_equal(np.maximum(x, 0), y)
            self.assertEqual([], session.plan.summary.free_dimensions)
            self.assertEqual(1, session.plan.summary.engine_segments)
        with self.assertRaisesRegex(ValueError, r"want float32 \(n\)x3, got float32 2x4"):
            session.run({"x": np.zeros((2, 4), np.float32)})
        with self.assertRaisesRegex(ValueError, "max_plans '0': want an integer from 1 to"):
            ane.Session(models.relu(["n", 3]), max_plans=0)

    def test_weights_that_are_no_arrays(self):
        session = ane.Session(models.network())
        for wrong, name in ((None, "NoneType"), (object(), "object")):
            with self.assertRaisesRegex(TypeError, f"weight 'w': want an array, got {name}"):
                session.update_weights({"w": wrong})

    def test_before_the_first_run_a_session_says_that_it_runs(self):
        session = ane.Session(models.relu(["n", 3]))
        self.assertEqual("M1: planned at the first run, for the sizes of its arrays\n"
                         "  free dimensions: n\n"
                         "  to plan before a run, bind it: dims={'n': 1}", repr(session))
        session.run({"x": np.zeros((2, 3), np.float32)})
        self.assertRegex(repr(session), "^M1: .* on the engine, 1 segment")

    def test_sizes_that_the_model_cannot_have_are_named(self):
        made = models.model([helper.make_node("Relu", ["x"], ["r"]),
                             helper.make_node("Reshape", ["r", "s"], ["y"], name="pairs")],
                            [("x", TensorProto.FLOAT, ("n", 8))], [("y", TensorProto.FLOAT, None)],
                            [("s", np.array([-1, 16], np.int64))])
        session = ane.Session(made)
        told = r"x=3x8: the model cannot have these sizes: node 'pairs' .*; sizes that fit: x=2x8 or x=4x8$"
        with self.assertRaisesRegex(ValueError, told):
            session.run({"x": np.zeros((3, 8), np.float32)})
        self.assertEqual((2, 16), session.run({"x": np.zeros((4, 8), np.float32)})["y"].shape)
        for words in ({"dims": {"n": 3}}, {"buckets": {"n": [3]}}):
            with self.subTest(str(words)), self.assertRaisesRegex(
                    ValueError, "n=3: the model cannot have this size: node 'pairs' .*; sizes that fit: n=2 or n=4$"):
                ane.check(made, **words)

    def test_warnings_of_runs(self):
        made = models.model([helper.make_node("Mul", ["x", "x"], ["y"], name="square")],
                            [("x", TensorProto.FLOAT, (4,))], [("y", TensorProto.FLOAT, (4,))])
        for _ in range(2):  # each session warns
            session = ane.Session(made)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                session.run({"x": np.ones(4, np.float32)})
            self.assertEqual([], session.run_warnings)
            with self.assertWarnsRegex(RuntimeWarning, "1 of 4 values of 'y' is not finite") as caught:
                session.run({"x": np.array([1, 2, 3, 300], np.float32)})
            self.assertEqual(__file__, caught.filename)
            told, = session.run_warnings
            self.assertIn("node 'square' (Mul) computes it: policy='refuse:node:y' runs it on the CPU", told)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                session.run({"x": np.array([1, 2, 3, 300], np.float32)})

    def test_warnings_of_several_threads(self):
        made = models.model([helper.make_node("Mul", ["x", "x"], ["y"])],
                            [("x", TensorProto.FLOAT, ("n",))], [("y", TensorProto.FLOAT, ("n",))])
        session = ane.Session(made)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            threads = [threading.Thread(target=session.run, args=({"x": np.full(n, 300, np.float32)},))
                       for n in (1, 2, 3, 4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(1, len(caught))

    def test_many_threads(self):
        session = ane.Session(models.network())
        wanted = [session.run({"x": models.image(i)})["y"] for i in range(8)]

        def runs(i):
            return all(np.array_equal(wanted[i], session.run({"x": models.image(i)})["y"])
                       for _ in range(20))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual([True] * 8, list(pool.map(runs, range(8))))

    def test_python_goes_on_while_a_model_runs(self):
        side = 640
        x = np.ones((side, side), np.float32)
        made = models.model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                            [("x", TensorProto.FLOAT, (side, side))],
                            [("y", TensorProto.FLOAT, (side, side))], [("w", x)])
        session = ane.Session(made, numerics="exact", threads=1)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(session.run, {"x": x})
            steps = 0
            while not running.done():
                steps += 1
        self.assertGreater(steps, 100)  # a step takes a microsecond, and the run takes thousands

    def test_a_file_that_was_replaced_is_not_read_again(self):
        def write(folder, factor, external):
            made = models.model([helper.make_node("Mul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, ("n", 512))],
                                [("y", TensorProto.FLOAT, ("n", 512))], [("w", np.full(512, factor, np.float32))])
            folder.mkdir()
            onnx.save(made, folder / "net.onnx", save_as_external_data=external, location="w.bin")

        # The model, or only the file of its weights.
        for name, external in (("net.onnx", False), ("w.bin", True)):
            for cache in (False, True):
                with self.subTest(name, cache=cache), folder_with_cache() as folder:
                    old, new = pathlib.Path(folder) / "old", pathlib.Path(folder) / "new"
                    write(old, 1, external)
                    write(new, 2, external)
                    session = ane.Session(old / "net.onnx", cache=cache)
                    one = {"x": np.ones((1, 512), np.float32)}
                    session.run(one)
                    (new / name).replace(old / name)
                    np.testing.assert_array_equal(session.run(one)["y"], 1)
                    with self.assertRaisesRegex(RuntimeError, f"{name}: the file has changed since it was loaded; "
                                                              "load the model again"):
                        session.run({"x": np.ones((2, 512), np.float32)})
                    with self.assertRaisesRegex(RuntimeError, f"{name}: the file has changed"):
                        session.update_weights({"w": np.full(512, 3, np.float32)})
                    # Another session has the new weights, also one that finds the program of the old ones.
                    again = ane.Session(old / "net.onnx", cache=cache)
                    np.testing.assert_array_equal(again.run(one)["y"], 2)

    def test_a_file_that_became_shorter_is_not_read_again(self):
        side = 128  # so that the file is large enough to be mapped (base/mapped_file.cc)
        made = models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, ("n", side))],
                            [("y", TensorProto.FLOAT, ("n", side))], [("w", np.ones((side, side), np.float32))])
        one, two = ({"x": np.ones((rows, side), np.float32)} for rows in (1, 2))
        for is_cached in (False, True):
            with self.subTest(is_cached=is_cached), folder_with_cache() as folder:
                path = pathlib.Path(folder) / "net.onnx"
                onnx.save(made, path)
                if is_cached:  # the program of the other size, which reads the weights from the file
                    ane.Session(path).run(two)
                session = ane.Session(path, cache=is_cached)
                os.truncate(path, 100)
                with self.assertRaisesRegex(RuntimeError, "net.onnx: the file has changed since it was loaded"):
                    session.run(two)

    def test_a_file_that_was_written_again_is_not_read_again(self):
        side = 128
        made = models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, ("n", side))],
                            [("y", TensorProto.FLOAT, ("n", side))], [("w", np.ones((side, side), np.float32))])
        two = {"x": np.ones((2, side), np.float32)}
        for policy in ("max-engine", "cpu"):  # ONNX Runtime opens the file itself
            with self.subTest(policy), folder_with_cache() as folder:
                path = pathlib.Path(folder) / "net.onnx"
                onnx.save(made, path)
                ane.Session(path, policy=policy).run(two)
                session = ane.Session(path, policy=policy)
                path.write_bytes(path.read_bytes().replace(np.float32(1).tobytes(), np.float32(2).tobytes()))
                with self.assertRaisesRegex(RuntimeError, "net.onnx: the file has changed since it was loaded"):
                    session.run(two)

    def test_errors(self):
        for target, told in (("m0", "no such target"), ("m1,m4", "want one target"), ("all", "want one")):
            with self.assertRaisesRegex(ValueError, told):
                ane.Session(models.relu(), target)
        with self.assertRaisesRegex(FileNotFoundError, "none.onnx"):
            ane.Session("none.onnx")
        with self.assertRaisesRegex(ValueError, "numerics 'x'"):
            ane.Session(models.relu(), numerics="x")
        with self.assertRaisesRegex(ValueError, r"dims=\{'N': 1\}, or shapes=\{'x': \[\?, 2\]\}"):
            ane.Session(models.relu(("N", "M")), buckets={"M": [2]})
        with self.assertRaises(TypeError):
            ane.Session(models.relu(), speed=11)
        for threads in (-1, 10**6):
            with self.assertRaisesRegex(ValueError, "threads"):
                ane.Session(models.relu(), threads=threads)
        for wrong in (None, [], {1: 2.0}):
            with self.assertRaisesRegex(TypeError, "want a dict"):
                ane.Session(models.relu()).run(wrong)


FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(FLOATS)
STRINGS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, None))


def vectors(*sizes):
    return [np.arange(size, dtype=np.float32) + 1 for size in sizes]


class Values(PackageTest):
    """Sequences, optionals and maps."""

    def assert_same(self, wanted, got):
        if isinstance(wanted, list):
            self.assertIsInstance(got, list)
            self.assertEqual(len(wanted), len(got))
            for a, b in zip(wanted, got):
                np.testing.assert_array_equal(a, b)
        elif wanted is None:
            self.assertIsNone(got)
        else:
            np.testing.assert_array_equal(wanted, got)

    def test_a_sequence_is_a_list(self):
        made = models.model([helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
                             helper.make_node("SequenceLength", ["s"], ["n"])],
                            [("s", SEQUENCE), ("x", TensorProto.FLOAT, (2,))],
                            [("t", SEQUENCE), ("n", TensorProto.INT64, ())])
        session = ane.Session(made)
        self.assertEqual(ane.Port("s", "float32", (), False, "sequence", "sequence(float32)"),
                         session.inputs[0])
        x = np.array([7, 8], np.float32)
        for s in ([], vectors(3), vectors(1, 0, 2), []):
            made = session.run({"s": s, "x": x})
            self.assertEqual(len(s), made["n"])
            self.assert_same([*s, x], made["t"])

    def test_strings_in_a_sequence(self):
        made = models.model([helper.make_node("SequenceAt", ["s", "i"], ["x"])],
                            [("s", STRINGS), ("i", TensorProto.INT64, ())],
                            [("x", TensorProto.STRING, (2,))])
        x = ane.Session(made).run({"s": [np.array(["a", "b"], object), np.array(["", "ü"], object)],
                                   "i": np.array(1)})["x"]
        self.assertEqual(["", "ü"], x.tolist())

    def test_an_optional_without_a_value_is_none(self):
        for held, value in ((FLOATS, vectors(2)[0]), (SEQUENCE, vectors(2, 1)), (SEQUENCE, [])):
            optional = helper.make_optional_type_proto(held)
            made = models.model([helper.make_node("OptionalHasElement", ["x"], ["has"]),
                                 helper.make_node("Identity", ["x"], ["y"])],
                                [("x", optional)],
                                [("has", TensorProto.BOOL, ()), ("y", optional), ("x", optional)])
            session = ane.Session(made)
            self.assertEqual("optional", session.inputs[0].kind)
            for given in (value, None, value, None):
                with self.subTest(session.inputs[0].type, given=given):
                    y = session.run({"x": given})
                    self.assertEqual(given is not None, y["has"])
                    self.assert_same(given, y["y"])
                    self.assert_same(given, y["x"])

    def test_an_input_of_any_kind_goes_straight_to_an_output(self):
        kind = helper.make_optional_type_proto(SEQUENCE)
        session = ane.Session(models.model(
            [helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, (2,)), ("s", kind)],
            [("y", TensorProto.FLOAT, (2,)), ("s", kind)]))
        for s in (vectors(2, 1), [], None):
            self.assert_same(s, session.run({"x": vectors(2)[0], "s": s})["s"])

    def test_maps_are_dicts(self):
        kind = onnx.TypeProto()
        kind.map_type.key_type = TensorProto.STRING
        kind.map_type.value_type.CopyFrom(FLOATS)
        made = models.model([helper.make_node("DictVectorizer", ["m"], ["x"], domain="ai.onnx.ml",
                                              string_vocabulary=["a", "b", "c"])],
                            [("m", kind)], [("x", TensorProto.FLOAT, (1, 3))])
        made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
        session = ane.Session(made)
        self.assertEqual(("map", "map(string, float32)"),
                         (session.inputs[0].kind, session.inputs[0].type))
        self.assert_same(np.array([[2, 0, 3]]), session.run({"m": {"c": 3.0, "a": 2.0}})["x"])
        zipped = models.model([helper.make_node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml",
                                                classlabels_int64s=[10, 20])],
                              [("x", TensorProto.FLOAT, (2, 2))],
                              [("m", helper.make_sequence_type_proto(onnx.TypeProto()))])
        zipped.graph.output[0].type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
        zipped.graph.output[0].type.sequence_type.elem_type.map_type.value_type.CopyFrom(FLOATS)
        zipped.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
        x = np.array([[1, 2], [3, 4]], np.float32)
        self.assertEqual([{10: 1.0, 20: 2.0}, {10: 3.0, 20: 4.0}],
                         ane.Session(zipped).run({"x": x})["m"])

    def test_wrong_values_are_named(self):
        made = models.model([helper.make_node("SequenceLength", ["s"], ["n"])], [("s", SEQUENCE)],
                            [("n", TensorProto.INT64, ())])
        session = ane.Session(made)
        wrong = [(vectors(2)[0], r"input 's': want sequence\(float32\), got float32 2"),
                 ([np.ones(2)], r"got sequence\(float64 2\); give a value of that type"),
                 (None, "got nothing"), ({"a": 1.0}, r"got map\(string 1, float32 1\)")]
        for s, told in wrong:
            with self.assertRaisesRegex(ValueError, told):
                session.run({"s": s})


if __name__ == "__main__":
    unittest.main()
