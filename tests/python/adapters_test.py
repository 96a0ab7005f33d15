"""Adapters (LoRA) of Session: run(x, adapter="a") against ONNX Runtime with merged weights, and hostile files.

    adapters_test.py SOURCE_FOLDER ANEMONE
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnxruntime_ep_ane as ane

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from small_decoder import decoder  # noqa: E402

SOURCE = pathlib.Path(sys.argv.pop(1))
ANEMONE = sys.argv.pop(1)
DTYPES = {"float32": "F32", "float16": "F16", "int64": "I64"}
COSINE = 0.999


def write_safetensors(path, arrays):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def low_rank(random, k, n, rank):
    """A and B as PEFT stores them; the product is about as large as a weight."""
    return (random.standard_normal((rank, k)).astype(numpy.float32) / k**0.5,
            random.standard_normal((n, rank)).astype(numpy.float32) / rank**0.5)


def write_peft(folder, modules, rank, alpha, seed=1, prefix="base_model.model."):
    """Writes an adapter for {module: (k, n)}. Returns the file, and what is added to each k x n weight."""
    random = numpy.random.default_rng(seed)
    folder.mkdir()
    arrays, added = {}, {}
    for module, (k, n) in modules.items():
        a, b = low_rank(random, k, n, rank)
        arrays[f"{prefix}{module}.lora_A.weight"], arrays[f"{prefix}{module}.lora_B.weight"] = a, b
        added[module] = alpha / rank * (b @ a).T
    path = folder / "adapter_model.safetensors"
    write_safetensors(path, arrays)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank, "lora_alpha": alpha, "peft_type": "LORA"}))
    return path, added


def change_config(path, changed):
    file = path.parent / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


def two_layers(rows=(4,)):
    """MatMul with a transposed weight, and Gemm with transB, named as PyTorch names weights. With several
    dimensions of `rows`, the second is a MatMul and an Add."""
    random = numpy.random.default_rng(0)
    weights = {"net.up.weight": random.standard_normal((32, 16)), "net.down.weight": random.standard_normal((8, 32)),
               "net.down.bias": random.standard_normal(8)}
    nodes = [helper.make_node("Transpose", ["net.up.weight"], ["t"], perm=[1, 0]),
             helper.make_node("MatMul", ["x", "t"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "net.down.weight", "net.down.bias"], ["y"], transB=1)]
    if len(rows) > 1:  # Gemm takes matrices
        nodes[-1:] = [helper.make_node("Transpose", ["net.down.weight"], ["t2"], perm=[1, 0]),
                      helper.make_node("MatMul", ["r", "t2"], ["s"]),
                      helper.make_node("Add", ["s", "net.down.bias"], ["y"])]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, 8])],
        [numpy_helper.from_array((array / 4).astype(numpy.float32), name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


TWO = {"net.up": (16, 32), "net.down": (32, 8)}


def merged(model, added, weight_of, transposed):
    """The model with the products added to its weights."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        for module, product in added.items():
            if tensor.name == weight_of(module):
                array = numpy_helper.to_array(tensor) + (product.T if transposed else product)
                tensor.CopyFrom(numpy_helper.from_array(array.astype(numpy.float32), tensor.name))
    return changed


def on_onnx_runtime(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([port.name for port in session.get_outputs()], session.run(None, inputs)))


def cosine(ours, theirs):
    a, b = ours.astype(numpy.float64).ravel(), theirs.astype(numpy.float64).ravel()
    return a @ b / (numpy.linalg.norm(a) * numpy.linalg.norm(b))


class Adapters(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.x = numpy.random.default_rng(3).standard_normal((4, 16)).astype(numpy.float32)

    def session(self, model, **keywords):
        return ane.Session(model.SerializeToString(), cache=False, **keywords)

    def test_two_adapters_of_different_ranks(self):
        model = two_layers()
        files, wanted = {}, {}
        for name, modules, rank in (("a", TWO, 4), ("b", {"net.down": (32, 8)}, 2)):
            files[name], added = write_peft(self.folder / name, modules, rank, alpha=8, seed=len(files))
            wanted[name] = on_onnx_runtime(merged(model, added, lambda m: f"{m}.weight", True), {"x": self.x})["y"]
        wanted[""] = on_onnx_runtime(model, {"x": self.x})["y"]
        for numerics in ("fast", "exact"):
            session = self.session(model, adapters=files, numerics=numerics)
            self.assertEqual([port.name for port in session.inputs], ["x"])
            self.assertEqual(session.plan.summary.engine_macs, session.plan.summary.macs)
            self.assertEqual(session.plan.summary.engine_segments, 1)
            for name in ("a", "", "b", None, "a"):
                y = session.run({"x": self.x}, adapter=name)["y"]
                numpy.testing.assert_allclose(y, wanted[name or ""], atol=0.02)
            base = self.session(model, numerics=numerics).run({"x": self.x})["y"]
            self.assertEqual(session.run({"x": self.x})["y"].tobytes(), base.tobytes())
        with self.assertRaisesRegex(ValueError, "adapter 'c': the session has no such adapter; it has 'a', 'b'"):
            session.run({"x": self.x}, adapter="c")
        with self.assertRaisesRegex(ValueError, "loaded without adapters"):
            self.session(model).run({"x": self.x}, adapter="c")

    def test_each_row_has_an_adapter_of_its_own(self):
        """Adapters of two ranks and none in one batch, of rows and of (batch, tokens, features), on every target."""
        for target in ("h13", "h14", "h15", "h16", "h17"):
            for tokens in ((), (3,)):
                model = two_layers(("batch", *tokens))
                files, added = {}, {"": {}}
                for seed, (name, modules, rank) in enumerate((("a", TWO, 4), ("b", {"net.down": (32, 8)}, 2))):
                    folder = self.folder / f"{target}{len(tokens)}{name}"
                    files[name], added[name] = write_peft(folder, modules, rank, alpha=8, seed=seed)
                session = self.session(model, adapters=files, adapter_rows=True, target=target)
                self.assertEqual([port.name for port in session.inputs], ["x"])
                random = numpy.random.default_rng(7)
                for names in (["a", "b", None, "a"], ["b", "", "a", "b"], ["b"]):
                    x = random.standard_normal((len(names), *tokens, 16)).astype(numpy.float32)
                    y = session.run({"x": x}, adapter=names)["y"]
                    for row, name in enumerate(names):
                        changed = merged(model, added[name or ""], lambda m: f"{m}.weight", True)
                        want = on_onnx_runtime(changed, {"x": x[row : row + 1]})["y"]
                        numpy.testing.assert_allclose(y[row : row + 1], want, atol=0.03)
                    alike = session.run({"x": x}, adapter=["a"] * len(names))["y"]
                    self.assertEqual(alike.tobytes(), session.run({"x": x}, adapter="a")["y"].tobytes())
                self.assertEqual(session.plan.summary.engine_macs, session.plan.summary.macs)
                self.assertEqual(session.plan.summary.engine_segments, 1)
                self.assertEqual(session.plan.summary.cpu_segments, 0)

    def test_rows_of_gemm_over_merged_dimensions(self):
        """As in GPT-2: (batch, tokens, features) becomes (batch * tokens, features) before the product."""
        model = two_layers(("rows",))
        graph = model.graph
        graph.input[0].CopyFrom(helper.make_tensor_value_info("whole", TensorProto.FLOAT, ["batch", 3, 16]))
        graph.initializer.append(numpy_helper.from_array(numpy.array([-1, 16]), "flat"))
        graph.node.insert(0, helper.make_node("Reshape", ["whole", "flat"], ["x"]))
        file, added = write_peft(self.folder / "a", TWO, 4, alpha=8)
        session = self.session(model, adapters={"a": file}, adapter_rows=True)
        x = numpy.random.default_rng(7).standard_normal((2, 3, 16)).astype(numpy.float32)
        y = session.run({"whole": x}, adapter=["", "a"])["y"].reshape(2, 3, 8)
        for row, change in enumerate(({}, added)):
            want = on_onnx_runtime(merged(model, change, lambda m: f"{m}.weight", True), {"whole": x[row : row + 1]})
            numpy.testing.assert_allclose(y[row], want["y"], atol=0.03)

    def test_rows_that_are_not_first_are_refused(self):
        """(tokens, batch, features) before the product: the matrices of a row would meet those of a token."""
        model = two_layers(("tokens", "rows"))
        graph = model.graph
        graph.input[0].CopyFrom(helper.make_tensor_value_info("whole", TensorProto.FLOAT, ["batch", 2, 16]))
        graph.node.insert(0, helper.make_node("Transpose", ["whole"], ["x"], perm=[1, 0, 2]))
        file, _ = write_peft(self.folder / "a", TWO, 4, alpha=8)
        session = self.session(model, adapters={"a": file}, adapter_rows=True)
        with self.assertRaisesRegex((RuntimeError, ValueError), "adapter"):
            session.run({"whole": numpy.ones((2, 2, 16), numpy.float32)}, adapter=["", "a"])

    def test_errors_of_rows(self):
        model = two_layers(("batch",))
        file, _ = write_peft(self.folder / "a", TWO, 4, alpha=8)
        x = {"x": self.x}
        session = self.session(model, adapters={"a": file}, adapter_rows=True)
        for names, text in ((["a"] * 3, "adapter: 3 names for the 4 rows of the batch"),
                            (["a"] * 5, "adapter: 5 names for the 4 rows"),
                            (["a", "a", "", "c"], "adapter 'c': the session has no such adapter; it has 'a'"),
                            ([], "the list has no names")):
            with self.assertRaisesRegex(ValueError, text):
                session.run(x, adapter=names)
        with self.assertRaisesRegex(RuntimeError, "adapter_rows=True"):
            self.session(model, adapters={"a": file}).run(x, adapter=["a"] * 4)
        with self.assertRaisesRegex(ValueError, "no input has a free first dimension"):
            self.session(two_layers(), adapters={"a": file}, adapter_rows=True)
        base = self.session(model).run(x)["y"]
        self.assertEqual(session.run(x)["y"].tobytes(), base.tobytes())
        # No error names the inputs of the adapter's matrices.
        model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 8]))
        model.graph.node[-1].output[0] = "y0"
        model.graph.node.append(helper.make_node("Add", ["y0", "z"], ["y"]))
        both = self.session(model, adapters={"a": file}, adapter_rows=True)
        for rows, text in ((3, "'z' has 3 rows and input 'x' has 4; give the rows of one batch"),
                           (0, "'z' has no rows; give at least one")):
            with self.assertRaisesRegex(ValueError, text):
                both.run({"x": self.x, "z": numpy.zeros((rows, 8), numpy.float32)}, adapter=["a"] * 4)

    def test_rows_on_the_command_line(self):
        model = two_layers(("batch",))
        path, made = self.folder / "net.onnx", self.folder / "made"
        onnx.save(model, str(path))
        files = {name: write_peft(self.folder / name, TWO, rank, alpha=8, seed=rank)[0] for name, rank in (("a", 4), ("b", 2))}
        numpy.save(self.folder / "x.npy", self.x)
        words = [ANEMONE, "run", path, "--input", f"x={self.folder}/x.npy", "--output-dir", made, "-q"]
        words += [word for name, file in files.items() for word in ("--adapter", f"{name}={file}")]
        subprocess.run([*words, "--row-adapters", "a,,b,a"], check=True, capture_output=True)
        session = self.session(model, adapters=files, adapter_rows=True)
        want = session.run({"x": self.x}, adapter=["a", None, "b", "a"])["y"]
        numpy.testing.assert_array_equal(numpy.load(made / "y.npy"), want)
        for more, text in (([], "no row has it"), (["--row-adapters", "a,b"], "2 names for the 4 rows"),
                           (["--row-adapters", "a,b,c,a"], "adapter 'c': the session has no such adapter"),
                           (["--row-adapters", "a,,b,a", "--hazards"], "--hazards: needs one adapter for all rows")):
            done = subprocess.run([*words, *more], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

    def test_an_adapter_and_new_weights(self):
        model = two_layers()
        file, added = write_peft(self.folder / "a", TWO, 4, alpha=8)
        session = self.session(model, adapters={"a": file})
        weight = numpy_helper.to_array(model.graph.initializer[0]) * 2
        session.update_weights({"net.up.weight": weight})
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "net.up.weight"))
        want = on_onnx_runtime(merged(model, added, lambda m: f"{m}.weight", True), {"x": self.x})["y"]
        numpy.testing.assert_allclose(session.run({"x": self.x}, adapter="a")["y"], want, atol=0.03)

    def test_surfaces_as_the_silicon_wants_them(self):
        """Of one size, packed from their first byte, and bound in alphabetical order on the MIL route."""
        model = two_layers()
        file, _ = write_peft(self.folder / "a", TWO, 4, alpha=8)
        for route in ("netplist", "mil"):
            keywords = {"adapters": {"a": file}, "route": route}
            want = self.session(model, **keywords).run({"x": self.x}, adapter="a")["y"]
            with self.assertRaisesRegex(RuntimeError, "heed_limits"):  # surfaces of different sizes
                self.session(model, device_limits=True, **keywords).run({"x": self.x}, adapter="a")
            session = self.session(model, device_limits=True, heed_limits=True, **keywords)
            self.assertEqual(want.tobytes(), session.run({"x": self.x}, adapter="a")["y"].tobytes())

    def test_patterns_of_peft(self):
        """A key of alpha_pattern matches as PEFT matches it: the first, at the end of the path."""
        model = two_layers()
        path, added = write_peft(self.folder / "a", TWO, 4, alpha=8)
        for keys in (["up"], ["net.up"], ["net.u."], ["p"], ["et.up"], [".*up"], [".*p"], ["up|down"], ["^up"],
                     [r"^net\.up$"], [r"^net\.down$|up$"], ["n*et?x?.d?own+"], [r"net\.\d*up"], [r"n\.up"],
                     ["down", "net.*"], ["net.*", "down"], ["up$", "up"], [".+"], ["net"], ["up", "up|down"], []):
            alphas = {key: 16.0 + 8 * i for i, key in enumerate(keys)}
            change_config(path, {"alpha_pattern": alphas, "rank_pattern": {"up": 4}})
            scaled = {module: product * next((alpha for key, alpha in alphas.items()
                                              if re.match(rf"(.*\.)?({key})$", module)), 8) / 8
                      for module, product in added.items()}
            want = on_onnx_runtime(merged(model, scaled, lambda m: f"{m}.weight", True), {"x": self.x})["y"]
            ours = self.session(model, adapters={"a": path}).run({"x": self.x}, adapter="a")["y"]
            numpy.testing.assert_allclose(ours, want, atol=0.01 * numpy.abs(want).max(), err_msg=str(keys))

    def test_elements_that_are_not_finite(self):
        model = two_layers()
        for bad in (numpy.nan, numpy.inf):
            file, _ = write_peft(self.folder / f"bad{bad}", TWO, 4, alpha=8)
            data = bytearray(file.read_bytes())
            data[-4:] = numpy.float32(bad).tobytes()
            file.write_bytes(data)
            with self.assertRaisesRegex(ValueError, r"lora_B.weight' has NaN or infinite elements \(1\)"):
                self.session(model, adapters={"a": file})

    def test_models_of_the_torchscript_exporter(self):
        """Q, K, V and O of each layer, found by the names of nodes."""
        folder = SOURCE / "models" / "exported"
        entries = {e["name"]: e for e in json.loads((folder / "manifest.json").read_text())["models"]}
        for name, ends in (("bert_torchscript", ("self/query", "self/key", "self/value", "output/dense")),
                           ("llama_torchscript", ("q_proj", "k_proj", "v_proj", "o_proj"))):
            model = onnx.load(str(folder / f"{name}.onnx"))
            shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
            modules, weights = {}, {}
            for node in model.graph.node:
                path = node.name.rpartition("/")[0]
                if node.op_type == "MatMul" and path.endswith(ends) and node.input[1] in shapes:
                    module = path.strip("/").replace("/", ".").removeprefix("inner.")
                    modules[module], weights[module] = shapes[node.input[1]], node.input[1]
            self.assertGreaterEqual(len(modules), 8, name)
            file, added = write_peft(self.folder / name, modules, 4, alpha=4)
            random = numpy.random.default_rng(1)
            inputs = {}
            for value in model.graph.input:
                about, shape = entries[name]["inputs"][value.name], [d.dim_value for d in value.type.tensor_type.shape.dim]
                inputs[value.name] = (random.integers(0, about["below"], shape) if "below" in about
                                      else numpy.resize([int(b) for b in about["bits"]], shape)).astype(numpy.int64)
            session = self.session(model, adapters={"a": file})
            # The same nodes are on the engine as without an adapter.
            self.assertEqual(session.plan.summary.engine_macs, session.plan.summary.macs)
            base = on_onnx_runtime(model, inputs)
            want = on_onnx_runtime(merged(model, added, weights.get, False), inputs)
            ours = session.run(inputs, adapter="a")
            for output, array in want.items():
                self.assertGreater(cosine(ours[output], array), COSINE, f"{name} {output}")
            self.assertLess(min(cosine(base[o], want[o]) for o in want), COSINE, "the adapter changes too little")

    def test_onnx_adapter(self):
        """Values for inputs that the model has, from ONNX Runtime's own writer."""
        model = two_layers()
        graph = model.graph
        graph.node[-1].output[0] = "base"
        graph.node.extend([helper.make_node("MatMul", ["x", "up.A"], ["low"]),
                           helper.make_node("MatMul", ["low", "up.B"], ["change"]),
                           helper.make_node("Add", ["base", "change"], ["y"])])
        shapes = {"up.A": (16, 4), "up.B": (4, 8)}
        for name, shape in shapes.items():
            graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            graph.initializer.append(numpy_helper.from_array(numpy.zeros(shape, numpy.float32), name))
        random = numpy.random.default_rng(5)
        values = {name: random.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
        written = onnxruntime.AdapterFormat()
        written.set_adapter_version(1)
        written.set_model_version(1)
        written.set_parameters({n: onnxruntime.OrtValue.ortvalue_from_numpy(v) for n, v in values.items()})
        file = self.folder / "a.onnx_adapter"
        written.export_adapter(str(file))
        session = self.session(model, adapters={"a": file})
        for adapter, given in (("a", values), ("", {})):
            want = on_onnx_runtime(model, {"x": self.x, **given})["y"]
            numpy.testing.assert_allclose(session.run({"x": self.x}, adapter=adapter)["y"], want, atol=0.03)
        data = file.read_bytes()
        for cut in range(0, len(data), 7):
            file.write_bytes(data[:cut])
            with self.assertRaises(ValueError):
                self.session(model, adapters={"a": file})
        for at in range(0, len(data), 3):  # an error or other values, never a crash
            file.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1:])
            try:
                self.session(model, adapters={"a": file})
            except (ValueError, NotImplementedError):
                pass

    def test_a_decoder_generates_with_the_adapter_without_a_name(self):
        model, modules = decoder(layers=1), {f"layer0.{part}.w": (16, 16) for part in "qvo"}
        path, added = write_peft(self.folder / "peft", modules, 4, alpha=8)
        with_merged = list(ane.generate(merged(model, added, str, transposed=False).SerializeToString(), [5, 17, 40],
                                        max_new=12))
        self.assertNotEqual(list(ane.generate(model.SerializeToString(), [5, 17, 40], max_new=12)), with_merged)
        self.assertEqual(list(ane.generate(model.SerializeToString(), [5, 17, 40], max_new=12, adapters={"": path})),
                         with_merged)
        file = self.folder / "decoder.onnx"
        onnx.save(model, file)
        command = [ANEMONE, "generate", file, "--tokens", "5,17,40", "--max-new", "12", "--json", "--adapter"]
        done = subprocess.run([*command, path], capture_output=True, text=True)
        self.assertEqual(with_merged, json.loads(done.stdout)["tokens"], done.stderr)
        for told, words in (("cannot be compared", [path, "--compare"]), ("give it the name", [f"a={path}"])):
            done = subprocess.run([*command, *words], capture_output=True, text=True)
            self.assertEqual(2, done.returncode)
            self.assertIn(told, done.stderr)

    def test_errors_name_the_file_and_the_module(self):
        model = two_layers()

        def refused(text, modules=TWO, change=lambda path: None, kind=ValueError, **keywords):
            folder = self.folder / str(len(list(self.folder.iterdir())))
            path, _ = write_peft(folder, modules, 4, alpha=8, **keywords)
            with self.assertRaisesRegex(kind, text):
                self.session(model, adapters={"a": change(path) or path})

        refused("no product for the module 'net.middle'; near names: ", {"net.middle": (16, 32)})
        refused("'net.up': lora_A is 4x24, the product has 16 inputs", {"net.up": (24, 32)})
        refused("'net.up': lora_B is 33x4, the product has 32 outputs", {"net.up": (16, 33)})
        refused("adapter_config.json", change=lambda p: (p.parent / "adapter_config.json").unlink(),
                kind=FileNotFoundError)
        refused("want a number lora_alpha", change=lambda p: (p.parent / "adapter_config.json").write_text("{}") and None)
        refused("use_dora", change=lambda p: (p.parent / "adapter_config.json").write_text(
            '{"lora_alpha": 1, "use_dora": true}') and None, kind=NotImplementedError)
        for wrong, text, kind in (
                ({"use_rslora": "yes"}, "want true or false for use_rslora", ValueError),
                ({"use_rslora": 1}, "want true or false for use_rslora", ValueError),
                ({"use_dora": "true"}, "want true or false for use_dora", ValueError),
                ({"lora_alpha": "8"}, "want a number lora_alpha", ValueError),
                ({"alpha_pattern": ["up"]}, "want an object for alpha_pattern", ValueError),
                ({"alpha_pattern": {"up": "80"}}, "want a number alpha_pattern 'up'", ValueError),
                ({"alpha_pattern": {"": 1}}, "alpha_pattern '': it names no module", ValueError),
                ({"alpha_pattern": {"up|": 1}}, "it names no module", ValueError),
                ({"alpha_pattern": {"a" * 1001: 1}}, "more than 1000 characters", NotImplementedError),
                *(({"alpha_pattern": {key: 1}}, "of a regular expression is not supported", NotImplementedError)
                  for key in ("(up)", "u[pq]", "u{2}", r"\w", "*", "u**", "u+?", "u^", "$u", "u\\")),
                ({"r": 99}, "r is 99, but the matrices of module 'net.down' have rank 4", ValueError),
                *(({"r": r}, "want a whole number above 0 for r", ValueError) for r in (0, -4, 4.5, "4", None)),
                ({"r": 8, "rank_pattern": {"down": 4}}, "r is 8, but the matrices of module 'net.up'", ValueError),
                ({"rank_pattern": {"up": 2}}, "rank_pattern 'up' is 2, but", ValueError),
                ({"rank_pattern": {"up": "4"}}, "for rank_pattern 'up'", ValueError)):
            refused(text, kind=kind, change=lambda p, wrong=wrong: change_config(p, wrong))
        refused("want a .safetensors of PEFT", change=lambda p: p.rename(p.with_suffix(".bin")))

        def replaced(change):
            def write(path):
                path.write_bytes(change(path.read_bytes()))
            return write

        def header(text, data=b"\0" * 64):
            return replaced(lambda _: struct.pack("<Q", len(text)) + text + data)

        for change, text in (
                (replaced(lambda data: data[:5]), "shorter than 8 bytes"),
                (replaced(lambda data: data[:-1]), "elements are outside"),
                (replaced(lambda data: b"\xff" * 8 + data[8:]), "a header of"),
                (header(b"[]"), "not a JSON object"),
                (header(b'{"a": 1}'), "not an object"),
                (header(b'{"a": {"dtype": "F32"'), "ends inside"),
                (header(b'{"a": ' + b'{"b":' * 1000 + b"1" + b"}" * 1000 + b"}"), "not JSON"),
                (header(b'{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}}'), "does not fit its bytes"),
                (header(b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}}'), "want dtype, shape"),
                (header(b'{"a": {"dtype": "F32", "shape": [9223372036854775807, 9], "data_offsets": [0, 8]}}'),
                 "does not fit its bytes"),
                (header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}'), "outside"),
                (header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, '
                        b'"b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}'), "share bytes"),
                (header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}} x'), "does not end")):
            refused(text, change=change)
        refused("is not A or B of a linear layer", change=header(
            b'{"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'), kind=NotImplementedError)
        refused("one is missing", change=header(
            b'{"m.lora_A.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}'))


if __name__ == "__main__":
    unittest.main()
