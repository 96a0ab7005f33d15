"""The report of `anemone check`: what it says of unknown sizes, reasons, warnings and several targets."""

import json
import unittest

import jsonschema
import numpy
from onnx import TensorProto, helper, numpy_helper

from support import ROOT, CliTest, anemone, model, relu, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "check.json").read_text())


def weight(name, *shape):
    return numpy_helper.from_array(numpy.ones(shape, numpy.float32), name)


def dynamic_net():
    """Conv, Relu and GlobalAveragePool with free batch, height and width."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="stem/conv"),
             helper.make_node("Relu", ["a"], ["b"], name="stem/relu"),
             helper.make_node("GlobalAveragePool", ["b"], ["y"], name="pool")]
    return model(nodes, [tensor("x", ["batch", 3, "height", "width"])],
                 [tensor("y", ["batch", 8, 1, 1])], [weight("w", 8, 3, 3, 3)])


def half_known():
    """One product of known size, and one whose size is free: `0 MACs` would be wrong for it."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="known"),
             helper.make_node("MatMul", ["q", "k"], ["s"], name="scores")]
    return model(nodes, [tensor("x", [4, 8]), tensor("q", [4, 8]), tensor("k", [8, "past"])],
                 [tensor("y", [4, 8]), tensor("s", [4, "past"])], [weight("w", 8, 8)])


def unknown_operator():
    nodes = [helper.make_node("MyOp", ["x"], ["a"], name="mine", domain="com.acme"),
             helper.make_node("Relu", ["a"], ["b"], name="first"),
             helper.make_node("Neg", ["b"], ["y"], name="second")]
    return model(nodes, [tensor("x", [1, 8])], [tensor("y", [1, 8])], domains=["com.acme"])


def convolutions(count, channels=5, size=13):
    """Widths and channels that a target warns of, at every node."""
    nodes = [helper.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], name=f"block{i}/conv",
                              pads=[1, 1, 1, 1]) for i in range(count)]
    shape = [1, channels, size, size]
    return model(nodes, [tensor("v0", shape)], [tensor(f"v{count}", shape)],
                 [weight("w", channels, channels, 3, 3)])


def computed_weight():
    """A product whose weight is computed from a constant, which needs ONNX Runtime."""
    nodes = [helper.make_node("Tanh", ["w"], ["v"], name="root"),
             helper.make_node("MatMul", ["x", "v"], ["y"], name="product")]
    return model(nodes, [tensor("x", [4, 8])], [tensor("y", [4, 8])], [weight("w", 8, 8)])


def joined():
    """Nodes that become one unit each: a quantized pair, a Flatten before a Gemm; and one on the CPU."""
    quantize = [numpy_helper.from_array(numpy.float32(1 / 64), "scale"),
                numpy_helper.from_array(numpy.int8(0), "zero")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantize"),
             helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], name="dequantize"),
             helper.make_node("GlobalAveragePool", ["d"], ["p"], name="pool"),
             helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
             helper.make_node("Gemm", ["f", "w"], ["g"], name="head"),
             helper.make_node("Cast", ["g"], ["y"], name="double", to=TensorProto.DOUBLE)]
    return model(nodes, [tensor("x", [1, 8, 6, 6])], [tensor("y", [1, 4], TensorProto.DOUBLE)],
                 [*quantize, weight("w", 8, 4)])


NO_RUNTIME = {"ANEMONE_ORT_LIBRARY": "/nonexistent/libonnxruntime.so"}


class Reports(CliTest):
    def text(self, path, *words, code=0):
        done = anemone("check", path, *words)
        self.assertEqual(code, done.returncode, done.stderr)
        for line in done.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)
        return done.stdout

    def plan(self, path, *words):
        done = anemone("check", path, "--json", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document["models"][0]

    def test_the_gate_fails_if_sizes_are_unknown(self):
        bind = ["--dim", "batch=1", "--dim", "height=32", "--dim", "width=32"]
        path = self.write(dynamic_net())
        for words in (["-q"], ["--json"], ["--target", "all"], bind[:4]):
            done = anemone("check", path, "--require-engine-share", "0", *words)
            self.assertEqual(3, done.returncode, done.stdout)
            self.assertIn("cannot tell the share of MACs", done.stderr)
            self.assertIn("--dim width=224", done.stderr)
        self.assertEqual(0, anemone("check", path, "--require-engine-share", "1", *bind).returncode)
        half = anemone("check", self.write(half_known(), "half.onnx"), "--require-engine-share",
                       "0.5")
        self.assertEqual(3, half.returncode)
        self.assertIn("1 node has sizes that are unknown", half.stderr)

    def test_a_gate_that_fails_says_why_with_q(self):
        done = anemone("check", self.write(convolutions(1)), "--policy", "cpu", "-q",
                       "--require-engine-share", "0.5")
        self.assertEqual(3, done.returncode)
        self.assertIn("0 % of MACs on the engine; 50 % required", done.stderr)

    def test_only_a_model_that_has_no_macs_needs_no_share(self):
        free = self.write(relu(["n", 4]))  # Relu has no MACs, whatever n is
        self.assertEqual(0, anemone("check", free, "--require-engine-share", "1").returncode)

    def test_unknown_macs_are_null(self):
        found = self.plan(self.write(half_known()))
        target = found["targets"][0]
        macs = {node["name"]: node["macs"] for node in target["nodes"]}
        self.assertEqual({"known": 4 * 8 * 8, "scores": None}, macs)
        summary = target["summary"]
        self.assertEqual((None, 256, None, 1),
                         (summary["macs"], summary["engine_macs"], summary["engine_macs_share"],
                          summary["nodes_of_unknown_macs"]))
        self.assertIsNone(found["macs"])
        bound = self.plan(self.write(half_known()), "--dim", "past=16")["targets"][0]["summary"]
        self.assertEqual((256 + 4 * 8 * 16, 1.0), (bound["macs"], bound["engine_macs_share"]))

    def test_an_operator_that_multiplies_but_cannot_be_counted_is_unknown(self):
        nodes = [helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["y"], num_heads=2,
                                  domain="com.microsoft")]
        shapes = [tensor(name, [1, "seq", 8]) for name in ("q", "k", "v")]
        made = model(nodes, shapes, [tensor("y", [1, "seq", 8])], domains=["com.microsoft"])
        self.assertIsNone(self.plan(self.write(made))["targets"][0]["summary"]["macs"])

    def test_free_dimensions_are_named_with_a_command(self):
        path = self.write(dynamic_net())
        lines = self.text(path).splitlines()
        self.assertEqual("M1: cannot tell the share yet: 3 dimensions are free", lines[0])
        self.assertEqual("  bind them: --dim batch=1 --dim height=224 --dim width=224", lines[1])
        words = lines[1].split(": ")[1].split()
        self.assertTrue(self.text(path, *words).startswith("M1: 100 % of MACs on the engine, "))
        left = self.text(path, "--dim", "batch=1").splitlines()
        self.assertIn("2 dimensions are free", left[0])
        self.assertNotIn("batch", left[1])
        found = self.plan(path)
        self.assertEqual([{"name": "batch", "inputs": [{"input": "x", "axis": 0}]},
                          {"name": "height", "inputs": [{"input": "x", "axis": 2}]},
                          {"name": "width", "inputs": [{"input": "x", "axis": 3}]}],
                         found["free_dimensions"])
        self.assertEqual(["batch", "height", "width"],
                         found["targets"][0]["summary"]["free_dimensions"])

    def test_every_input_is_in_the_command(self):
        names = [f"token_ids_of_a_long_name_{i}" for i in range(4)]
        nodes = [helper.make_node("Sum", names, ["y"])]
        made = model(nodes, [tensor(name, ["batch", f"seq of {name}"]) for name in names[:3]] +
                     [tensor(names[3], [None, 7])], [tensor("y", ["batch", "s"])])
        text = self.text(self.write(made))
        command = text[text.index("--dim"):text.index("\n  2 nodes") if "\n  2 nodes" in text
                       else text.index("\n  1 node")]
        self.assertIn("'seq of token_ids_of_a_long_name_2=128'", command)
        self.assertIn(f"--shape {names[3]}=1x7", command)
        self.assertEqual(1, command.count("batch=1"))
        for line in command.splitlines()[:-1]:
            self.assertTrue(line.endswith(" \\"), line)

    def test_the_first_line_answers(self):
        path = self.write(convolutions(2))
        first = self.text(path).splitlines()[0]
        self.assertEqual("M1: 100 % of MACs on the engine, 1 segment, nothing on the CPU", first)
        first = self.text(path, "--policy", "cpu").splitlines()[0]
        self.assertEqual("M1: 0 % of MACs on the engine, everything on the CPU", first)
        text = self.text(path)
        self.assertIn("  2 nodes: 2 engine, 0 CPU, 0 folded; 76.0 k MACs", text)
        for word in ("netplist", "decompile", "route", "guide", str(path)):
            self.assertNotIn(word, text)

    def test_without_onnx_runtime_the_answer_is_not_known(self):
        path = self.write(computed_weight())
        for words, title in (([], "M1"), (["--target", "m1,m4"], "2 targets")):
            done = anemone("check", path, *words, env=NO_RUNTIME)
            self.assertEqual(0, done.returncode, done.stderr)
            lines = done.stdout.splitlines()
            self.assertEqual(f"{title}: cannot tell: ONNX Runtime is missing, which computes constants",
                             lines[0])
            self.assertTrue(lines[1].startswith("  remedy: run tools/quickstart, or set ANEMONE_ORT_LIBRARY"),
                            done.stdout)
            self.assertEqual(1, done.stdout.count("remedy: run tools/quickstart"))
            self.assertNotIn("0 % of MACs", done.stdout)
        done = anemone("check", path, "--require-engine-share", "0.5", env=NO_RUNTIME)
        self.assertEqual(3, done.returncode)
        self.assertIn("ONNX Runtime is missing, which computes constants; run tools/quickstart",
                      done.stderr)
        document = json.loads(anemone("check", path, "--json", env=NO_RUNTIME).stdout)
        jsonschema.validate(document, SCHEMA)
        target = document["models"][0]["targets"][0]
        self.assertEqual([None, None], [target["summary"][key] for key in
                                        ("engine_macs", "engine_macs_share")])
        self.assertEqual(["no-onnx-runtime"], [w["rule"] for w in target["warnings"]
                                               if w["rule"] in ("no-onnx-runtime", "not-folded")])
        self.assertTrue(self.text(path).startswith("M1: 100 % of MACs on the engine"))
        plain = anemone("check", self.write(convolutions(1)), env=NO_RUNTIME)  # nothing to compute
        self.assertTrue(plain.stdout.startswith("M1: 100 % of MACs on the engine"), plain.stdout)

    def test_nodes_are_counted_once_and_alike(self):
        path = self.write(joined())
        for words in ([], ["--policy", "cpu"], ["--target", "h11"]):
            found = self.plan(path, *words)
            target, = found["targets"]
            s = target["summary"]
            counts = s["engine_nodes"], s["cpu_nodes"], s["folded_nodes"]
            self.assertEqual((6, 6, 6), (found["nodes"], s["nodes"], sum(counts)))
            self.assertEqual(6, sum(len(node["origin"]) for node in target["nodes"]))
            self.assertEqual(counts[0] + counts[1], sum(segment["nodes"] for segment in target["segments"]))
            text = self.text(path, "-v", *words)
            self.assertIn("  6 nodes: {} engine, {} CPU, {} folded; ".format(*counts), text)
            for name in ("quantize", "dequantize", "pool", "flatten", "head", "double"):
                self.assertEqual(1, text.count(f"\n  {name} "), text)
            reasons = [int(line.split()[0]) for line in text.split("  node  ")[0].splitlines()
                       if line.startswith("    ") and line.split()[1] in ("node:", "nodes:")]
            self.assertEqual(counts[1], sum(reasons), text)

    def test_quiet_prints_the_answer_alone(self):
        path, other = self.write(dynamic_net()), self.write(relu(), "other.onnx")
        self.assertEqual("M1: cannot tell the share yet: 3 dimensions are free\n",
                         self.text(path, "-q"))
        self.assertEqual("2 targets: 1 of 1 node on the engine\n", self.text(other, "-q", "--target", "m1,m4"))
        done = anemone("check", "-q", path, other, env={"COLUMNS": "1000"}).stdout.splitlines()
        self.assertEqual([str(path), str(other)], [line.split(": M1: ")[0] for line in done])

    def test_several_models_are_named(self):
        one, two = self.write(relu(), "one.onnx"), self.write(relu(), "two.onnx")
        done = anemone("check", one, two).stdout.splitlines()
        self.assertEqual([str(one), str(two)], [line for line in done if line.endswith(".onnx")])

    def test_a_target_without_limits_says_so_first(self):
        text = self.text(self.write(convolutions(2)), "--target", "m9")
        self.assertTrue(text.startswith("M9 (unreleased code name, limits not published): 100 %"))
        for target in ("u1", "t0", "h16s"):
            self.text(self.write(dynamic_net()), "--target", target)

    def test_reasons_are_grouped_by_rule(self):
        reasons = self.text(self.write(dynamic_net()))
        self.assertEqual(1, reasons.count("[symbolic-shape]"))
        self.assertEqual(1, reasons.count("remedy: bind the model's dimensions"))
        self.assertIn("3 nodes: ", reasons)
        for operator in ("1 Conv", "1 Relu", "1 GlobalAveragePool"):
            self.assertIn(operator, " ".join(reasons.split()))
        self.assertNotIn("more reason", reasons)

    def test_reasons_are_ordered_by_macs(self):
        nodes = [helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
                 *(helper.make_node("Softmax", [f"s{i}"], [f"s{i + 1}"]) for i in range(3))]
        made = model(nodes, [tensor("x", [1, 4, 2, 8, 8]), tensor("s0", [1, 8])],
                     [tensor("a", [1, 4, 1, 7, 7]), tensor("s3", [1, 8])],
                     [weight("w", 4, 4, 2, 2, 2)])
        text = self.text(self.write(made), "--target", "h12", "--no-rewrites")
        self.assertIn("1 Conv", text)
        self.assertLess(text.index("1 Conv"), text.index("3 Softmax"))
        self.assertIn("\"Softmax is not supported by this ANE architecture\"",
                      " ".join(text.split()))

    def test_details_have_the_models_names(self):
        text = self.text(self.write(convolutions(3)), "-v")
        for i in range(3):
            self.assertIn(f"  block{i}/conv  ", text)
        self.assertNotIn("/#", text)
        nameless = self.text(self.write(relu()), "-v")
        self.assertIn("  /#0  ", nameless)

    def test_a_body_on_the_cpu_is_one_reason(self):
        """Not that of the operators in it, which have lowerings."""
        branch = [helper.make_graph([helper.make_node("Relu", ["x"], [f"{name}.r"]),
                                     helper.make_node("Neg", [f"{name}.r"], [name])],
                                    name, [], [tensor(name, ["n"])]) for name in ("a", "b")]
        path = self.write(model([helper.make_node("If", ["which"], ["y"], then_branch=branch[0],
                                                  else_branch=branch[1])],
                                [tensor("which", [], TensorProto.BOOL), tensor("x", ["n"])], [tensor("y", ["n"])]))
        text = self.text(path)
        self.assertIn("5 nodes: ONNX Runtime runs its bodies with it", text)
        self.assertIn("[body-on-cpu] (1 If)", text)
        self.assertNotIn("no lowering", text)

    def test_details_cite_nothing(self):
        for made in (convolutions(3), dynamic_net(), unknown_operator()):
            for target in ("h11", "h13", "m9"):
                text = self.text(self.write(made), "-v", "--target", target)
                for word in ("guide", "seed", ".json", "conflicts.md", "appB"):
                    self.assertNotIn(word, text)
        sources = [w["source"] for w in self.plan(self.write(convolutions(3)))["targets"][0]["warnings"]]
        self.assertTrue(any("guide" in source for source in sources))

    def test_long_names_are_cut_at_their_start(self):
        name = "/model/decoder/layers.0/self_attn/with/a/very/long/path/q_proj/Relu"
        made = relu()
        made.graph.node[0].name = name
        text = self.text(self.write(made), "-v")
        self.assertIn("/q_proj/Relu ", text)
        self.assertIn("...", text)
        wide = anemone("check", self.write(made), "-v", env={"COLUMNS": "160"}).stdout
        self.assertIn(f" {name} ", wide)

    def test_an_unknown_operator_is_named_as_the_cause(self):
        path = self.write(unknown_operator())
        text = " ".join(self.text(path).split())
        self.assertIn("2 nodes: type unknown: made by MyOp (com.acme) [type-unknown]", text)
        self.assertIn("1 node: Anemone has no lowering [no-lowering] (1 MyOp (com.acme))", text)
        self.assertNotIn("dtype", text)
        nodes = self.plan(path)["targets"][0]["nodes"]
        self.assertTrue(all(node["remedy"] for node in nodes))
        self.assertEqual("type unknown: made by MyOp (com.acme)", nodes[1]["message"])

    def test_the_remedy_for_unknown_types_helps(self):
        made = unknown_operator()
        made.graph.value_info.append(tensor("a", [1, 8]))
        nodes = self.plan(self.write(made))["targets"][0]["nodes"]
        self.assertEqual(["cpu", "engine", "engine"], [node["placement"] for node in nodes])

    def test_targets_are_a_table(self):
        path = self.write(model([helper.make_node("Softmax", ["x"], ["y"])],
                                [tensor("x", [1, 8])], [tensor("y", [1, 8])]))
        text = self.text(path, "--target", "all")
        self.assertLess(len(text.splitlines()), 20)
        listed = json.loads(anemone("targets", "--json").stdout)["targets"]
        self.assertTrue(text.startswith(f"{len(listed)} targets: "))
        for row in listed:
            self.assertIn(row["products"] or row["target"].upper()[:2], " ".join(text.split()))
        two = self.text(path, "--target", "h12,m1")
        self.assertEqual(5, len(two.splitlines()), two)
        self.assertIn("M1, A13", two)
        details = self.text(path, "--target", "h12,m1", "-v")
        self.assertIn("[softmax-arch]", details)

    def test_shares_of_targets_are_in_the_first_line(self):
        text = self.text(self.write(convolutions(2)), "--target", "m1,m2,m4")
        lines = text.splitlines()
        self.assertEqual("3 targets: 100 % of MACs on the engine", lines[0])
        self.assertEqual(1, len([line for line in lines if "M1, A13, M2, A14, M4, A16" in line]))
        free = self.text(self.write(dynamic_net()), "--target", "m1,m2").splitlines()
        self.assertEqual("2 targets: cannot tell the share yet: 3 dimensions are free", free[0])
        self.assertEqual(1, " ".join(free).count("bind them"))

    def test_warnings_count_nodes_and_fold(self):
        path = self.write(convolutions(4))
        text = self.text(path)
        shown = text[text.index("  warnings"):]
        self.assertIn("4 nodes [width-granule], e.g. block", shown)
        listed = self.plan(path)["targets"][0]["warnings"]
        places = [(w["rule"], w["node"]) for w in listed if w["rule"] == "width-granule"]
        self.assertEqual(4, len(places))
        self.assertEqual(len(places), len(set(places)))
        self.assertEqual({f"block{i}/conv" for i in range(4)},
                         {w["name"] for w in listed if w["rule"] == "width-granule"})

    def test_a_node_of_many_units_is_warned_of_once(self):
        size = 5
        nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="lstm", hidden_size=size)]
        made = model(nodes, [tensor("x", [6, 1, size])], [tensor("y", [6, 1, 1, size])],
                     [weight("w", 1, 4 * size, size), weight("r", 1, 4 * size, size)])
        listed = self.plan(self.write(made))["targets"][0]["warnings"]
        granules = [w for w in listed if w["rule"] == "width-granule"]
        self.assertLessEqual(len(granules), 1)
        self.assertNotIn("6 nodes", self.text(self.write(made)))

    def test_no_remedy_that_cannot_be_followed(self):
        nodes = [helper.make_node("GlobalAveragePool", ["x"], ["y"], name="pool")]
        made = model(nodes, [tensor("x", [1, 8, 8, 8])], [tensor("y", [1, 8, 1, 1])])
        listed = self.plan(self.write(made))["targets"][0]["warnings"]
        self.assertNotIn("width-granule", [w["rule"] for w in listed])

    def test_the_remedy_for_data_dependent_sizes(self):
        """Each node is told what its size depends on; a dimension that is free is still to be bound."""
        nodes = [helper.make_node("Relu", ["x"], ["a"], name="free"),
                 helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["i"], name="nms"),
                 helper.make_node("Cast", ["i"], ["c"], name="cast", to=TensorProto.FLOAT),
                 helper.make_node("Neg", ["c"], ["d"], name="chosen"),
                 helper.make_node("Reshape", ["z", "shape"], ["r"], name="reshape"),
                 helper.make_node("Neg", ["r"], ["n"], name="neg")]
        made = model(nodes, [tensor("x", ["batch", 4]), tensor("boxes", [1, 4, 4]),
                             tensor("scores", [1, 1, 4]), tensor("z", [4, 6]),
                             tensor("shape", [2], TensorProto.INT64)],
                     [tensor("a", ["batch", 4]), tensor("d", ["k", 3]), tensor("n", ["p", "q"])])
        path = self.write(made)

        def remedies_of(*words):
            return {node["name"]: node["remedy"]
                    for node in self.plan(path, *words)["targets"][0]["nodes"]}

        remedies = remedies_of()
        self.assertIn("--dim", remedies["free"])
        self.assertIn("--dim", remedies["neg"])  # the shape may depend on a dimension that is free
        self.assertIn("NonMaxSuppression 'nms' takes it from the data; it and the nodes "
                      "after it run on the CPU", remedies["chosen"])
        remedies = remedies_of("--dim", "batch=1")
        for name in ("reshape", "neg"):
            self.assertIn("Reshape 'reshape' takes it from the data; make the inputs that it takes its size "
                          "from constant", remedies[name])
        self.assertNotIn("--dim", remedies["chosen"] + remedies["neg"])

    def test_data_dependent_sizes_are_not_free_dimensions(self):
        nodes = [helper.make_node("NonZero", ["x"], ["i"]),
                 helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
                 helper.make_node("MatMul", ["w", "f"], ["y"], name="product")]
        made = model(nodes, [tensor("x", [2, 4])], [tensor("y", [3, "n"])], [weight("w", 3, 2)])
        path = self.write(made)
        self.assertEqual("M1: cannot tell the share: MACs unknown for 1 node",
                         self.text(path).splitlines()[0])
        self.assertEqual([], self.plan(path)["free_dimensions"])
        text = " ".join(self.text(path).split())
        self.assertIn("remedy: no option binds the size: NonZero takes it from the data; keep all elements "
                      "and mask them", text)
        self.assertNotIn("--dim", text)
        done = anemone("check", path, "--require-engine-share", "0.5")
        self.assertEqual(3, done.returncode)
        ran = json.loads(anemone("run", path, "--json").stdout)
        self.assertIsNone(ran["plan"]["engine_macs_share"])


class Names(CliTest):
    def test_marks_that_turn_lines_do_not_reach_the_terminal(self):
        name = "a\u202eb\u2067\u200f\x1b[31m\u009b32m"
        path = self.write(model([helper.make_node("Bernoulli", ["x"], ["y"], name=name)], [tensor("x", [1, 4])],
                                [tensor("y", [1, 4])]))
        said = anemone("check", path, "-v", env={"COLUMNS": "160"}).stdout
        self.assertIn("a\\u202eb\\u2067\\u200f\\033[31m\\u009b32m", said)
        for mark in "\u202e\u2067\u200f\x1b\u009b":
            self.assertNotIn(mark, said)


if __name__ == "__main__":
    unittest.main()
