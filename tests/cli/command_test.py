"""The command line: exit codes, JSON by schema, help, completion, pages."""

import json
import subprocess
import unittest

import jsonschema
import numpy
from onnx import helper

from support import ROOT, CliTest, anemone, model, relu, tensor

SCHEMAS = {name: json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
           for name in ("check", "run", "bench", "confirm", "targets", "units",
                        "convert")}


def softmax():
    return model([helper.make_node("Softmax", ["x"], ["y"], name="soft")],
                 [tensor("x", [1, 8, 1, 64])], [tensor("y", [1, 8, 1, 64])])


def matmul():
    weight = helper.make_tensor("w", 1, [4, 4], numpy.ones(16, numpy.float32))
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 4])],
                 [tensor("y", [1, 4])], [weight])


class Commands(CliTest):
    def answer(self, schema, *words, code=0):
        done = anemone(*words, "--json")
        self.assertEqual(code, done.returncode, done.stderr)
        document = json.loads(done.stdout)  # stdout has nothing else
        jsonschema.validate(document, SCHEMAS[schema])
        return document

    def test_the_engines_refusal_is_an_answer(self):
        checked = self.answer("check", "check", self.write(softmax()), "--target", "h12,M1")
        refused, taken = checked["models"][0]["targets"]
        self.assertEqual("h12", refused["target"])
        node = refused["nodes"][0]
        self.assertEqual(("rejected", "validator"), (node["verdict"], node["layer"]))
        self.assertEqual("Softmax is not supported by this ANE architecture", node["message"])
        self.assertEqual(("h13", "engine"), (taken["target"], taken["nodes"][0]["placement"]))

    def test_confirm_asks_targets_about_one_operation(self):
        asked = self.answer("confirm", "confirm", "sin", "--input", "4x8", "--route", "mil",
                            "--target", "h13,h15")
        self.assertEqual(["rejected", "native"], [r["verdict"] for r in asked["results"]])
        conv = self.answer("confirm", "confirm", "conv", "--input", "1x4x64x64", "--const",
                           "weight=4x4x3x14", "--attr", "strides=[1,1]")
        self.assertEqual("validator", conv["results"][0]["layer"])
        topk = ["confirm", "TopK", "--input", "1x1x1x16", "--attr", "Type=Max", "--attr",
                "SortDimension=Width", "--attr", "VectorDimension=Channel", "--attr",
                "SortIndices=[0]", "--target", "h14"]
        self.assertEqual("parser", self.answer("confirm", *topk)["results"][0]["layer"])

    def test_convert_writes_what_check_plans(self):
        out = self.folder / "out"
        made = self.answer("convert", "convert", self.write(matmul()), "--target", "m1", "-o", out)
        self.assertEqual(made, json.loads((out / "manifest.json").read_text()))
        segment = made["segments"][0]
        self.assertEqual(("engine", True), (segment["placement"], segment["written"]))
        plist = (out / segment["folder"] / "net.plist").read_text()
        self.assertIn("<key>ProcedureList</key>", plist)
        weights = numpy.fromfile(out / segment["folder"] / "weights.1", numpy.float16)
        self.assertEqual([1] * 16, weights.tolist())
        self.expect_error(anemone("convert", self.folder / "model.onnx", "-o", out),
                          "not empty; choose another")
        self.expect_error(anemone("convert", self.folder / "model.onnx"), "-o DIR", code=2)
        binary = self.folder / "binary"
        self.assertEqual(0, anemone("convert", self.folder / "model.onnx", "-o", binary,
                                    "--binary").returncode)
        self.assertTrue((binary / "segment-0" / "net.plist").read_bytes().startswith(b"bplist00"))

    def test_convert_names_what_no_netplist_holds(self):
        norm = model([helper.make_node("LpNormalization", ["x"], ["y"], axis=1, p=2)],
                     [tensor("x", [1, 2, 4, 4])], [tensor("y", [1, 2, 4, 4])])
        path = self.write(norm)
        made = self.answer("convert", "convert", path, "--target", "m1", "-o", self.folder / "any")
        self.assertEqual("L2Normalization", made["segments"][0]["unverified"][0]["type"])
        made = self.answer("convert", "convert", path, "--target", "m1", "-o", self.folder / "sure",
                           "--verified-only", code=1)
        self.assertFalse(made["segments"][0]["written"])
        self.assertIn("the keys of L2Normalization", made["segments"][0]["missing"][0]["why"])

    def test_confirm_refuses_what_the_operation_does_not_take(self):
        for words, piece in (
            (["relu", "--input", "1x8", "--input", "2x2"], "there is no argument 2"),
            (["relu", "--input", "1x8:float16"], "there is no dtype 'float16'"),
            (["softmax", "--input", "1x8", "--attr", "axis=18446744073709551615"], "64-bit integer"),
            (["Neuron", "--input", "1x8", "--attr", "Type=ReLU", "--const", "junk=3x3"], "'junk'"),
            (["conv", "--input", "1x4x8x8", "--const", "weight=8x4x3x3", "--const", "bias=9"],
             "want 8 elements"),
        ):
            self.expect_error(anemone("confirm", *words), piece, code=2)

    def test_a_bad_case_among_good_ones(self):
        good = {"id": "a", "op": "relu", "inputs": [{"shape": [1, 8]}]}
        probes = self.write(json.dumps([good, {"op": "relu", "inputs": 3}, good]).encode(), "p.json")
        done = anemone("confirm", "--probe", probes, "--json")
        self.assertEqual(1, done.returncode)
        self.assertIn("case 2: inputs", done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertEqual([False, True, False], ["error" in result for result in results])
        deep = b'[{"op": "relu", "attrs": {"a": ' + b"[" * 100000 + b"]" * 100000 + b"}}]"
        self.expect_error(anemone("confirm", "--probe", self.write(deep, "deep.json")),
                          "nested deeper")

    def test_confirm_says_what_it_wants(self):
        self.expect_error(anemone("confirm", "sofmax", "--input", "1x4"), "near: Softmax, softmax",
                          code=2)
        self.expect_error(anemone("confirm", "softmax", "--input", "1x4", "--attr", "axes=1"),
                          "no attribute 'axes'", code=2)
        self.expect_error(anemone("confirm", "softmax"), "argument 1 is missing", code=2)
        self.expect_error(anemone("confirm"), "--probe", code=2)
        self.expect_error(anemone("confirm", "relu", "--input", "1xq"), "--input", code=2)
        probe = self.folder / "probe.json"
        probe.write_text('[{"op": "relu", "inputs": [{"shape": "wide"}]}]')
        self.expect_error(anemone("confirm", "--probe", probe), "case 1")
        probe.write_text("nonsense")
        self.expect_error(anemone("confirm", "--probe", probe), "want JSON")

    def test_targets_and_units_are_listed(self):
        self.answer("targets", "targets")
        units = self.answer("units", "units")["units"]
        self.assertGreater(len(units), 50)
        self.assertIn("h13", anemone("targets").stdout)
        self.expect_error(anemone("units", "Sofmax"), "near: Softmax", code=2)

    def test_all_targets_answer(self):
        checked = self.answer("check", "check", self.write(relu()), "--target", "all")
        listed = [row["target"] for row in self.answer("targets", "targets")["targets"]]
        answered = [row["target"] for row in checked["models"][0]["targets"]]
        self.assertEqual(sorted(listed), sorted(answered))

    def test_a_bad_model_among_good_ones(self):
        bad = self.folder / "bad.onnx"
        bad.write_bytes(b"nonsense")
        checked = self.answer("check", "check", self.write(relu()), bad, code=1)
        self.assertIn("targets", checked["models"][0])
        self.assertIn("error", checked["models"][1])

    def test_a_share_of_macs_is_a_gate(self):
        path = self.write(matmul())
        gate = ["check", path, "--require-engine-share", "0.95", "-q"]
        self.assertEqual(0, anemone(*gate).returncode)
        self.assertEqual(3, anemone(*gate, "--policy", "cpu").returncode)
        no_macs = self.write(relu(), "relu.onnx")
        self.assertEqual(0, anemone("check", no_macs, "--require-engine-share", "1").returncode)

    def test_run_compares(self):
        ran = self.answer("run", "run", self.write(softmax()), "--compare")
        self.assertTrue(ran["within_tolerance"])
        self.assertGreater(ran["outputs"][0]["cosine"], 0.999)
        self.assertLess(ran["outputs"][0]["max_rel_error"], 0.01)
        done = anemone("run", self.write(softmax()), "--compare", "--tolerance", "max_abs=0")
        self.assertEqual(3, done.returncode)

    def test_run_says_the_same_twice(self):
        for _ in range(2):
            ran = [anemone("run", self.write(softmax()), "--seed", "7", "--output-dir",
                           self.folder / str(i)) for i in range(2)]
            self.assertEqual([0, 0], [r.returncode for r in ran])
        first, second = (numpy.load(self.folder / str(i) / "y.npy") for i in range(2))
        numpy.testing.assert_array_equal(first, second)

    def test_profile_is_a_chrome_trace(self):
        trace = self.folder / "trace.json"
        self.assertEqual(0, anemone("run", self.write(softmax()), "--profile", trace).returncode)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertTrue({"segment", "unit"} <= {event["cat"] for event in events})

    def test_bench_gives_ratios(self):
        measured = self.answer("bench", "bench", self.write(matmul()), "--repeat", "3")
        self.assertIn("peak memory", [m["name"] for m in measured["models"][0]["measures"]])

    def test_wrong_usage_is_exit_2(self):
        path = self.write(relu())
        for words, piece in ((["check"], "required"),
                             (["check", path, "--target", "h99"], "near"),
                             (["check", path, "--dim", "N"], "--dim"),
                             (["check", path, "--dim", "N=1", "--dim", "N=2"], "given twice"),
                             (["check", path, "--shape", "x=1x4", "--shape", "x=2x4"],
                              "given twice"),
                             (["check", path, "--nonsense"], "nonsense"),
                             (["run", path, "--tarjet", "h13"],
                              "--tarjet: run has no such option in this version; did you mean --target?"),
                             (["convert", path, "-o", "d", "--bucket", "n=1,2"],
                              "--bucket applies to Core ML packages; add --to mlpackage"),
                             (["confirm", "Relu", "--dim=n=1"],
                              "--dim: confirm has no such option in this version; only check, run"),
                             (["fly"], "fly"),
                             (["run", ""], "run: an argument is empty, want MODEL"),
                             (["diff", path, ""], "diff: an argument is empty"),
                             (["run", path, "--policy", "most"], "max-engine"),
                             (["run", path, "--tolerance", "cosine=0.9"], "--compare"),
                             (["report", path], "--output"),
                             (["completion", "tcsh"], "bash")):
            self.expect_error(anemone(*words), piece, code=2)

    def test_names_that_are_not_utf8_are_still_json(self):
        made = relu().SerializeToString().replace(b"test", b"t\xffst")
        self.answer("check", "check", self.write(made))

    def test_help_names_every_option(self):
        text = anemone("check", "--help").stdout
        for option in ("--target", "--dim", "--shape", "--route", "--json", "--policy",
                       "--save-rejected"):
            self.assertIn(option, text)

    def test_completion_scripts_parse(self):
        for shell in ("bash", "zsh", "fish"):
            script = anemone("completion", shell).stdout
            self.assertIn("--target", script.replace("-l target", "--target"))
            if shell == "bash":
                done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
                self.assertEqual("", done.stderr)
                asked = script + "\nCOMP_WORDS=(anemone check --tar) COMP_CWORD=2; _anemone; " \
                                 "echo ${COMPREPLY[@]}"
                told = subprocess.run(["bash"], input=asked, text=True, capture_output=True)
                self.assertEqual("--target", told.stdout.strip())

    def test_no_colour_when_not_on_a_terminal(self):
        self.assertNotIn("\x1b", anemone("check", self.write(relu())).stdout)

    def test_a_missing_onnx_runtime_is_told_with_the_remedy(self):
        env = {"ANEMONE_ORT_LIBRARY": "/nowhere/libonnxruntime.so"}
        path = self.write(relu())
        self.expect_error(anemone("run", path, "--policy", "cpu", env=env),
                          "/nowhere/libonnxruntime.so")
        done = anemone("run", path, env=env)
        self.assertEqual(0, done.returncode, done.stderr)  # all is on the engine, so ONNX Runtime is not needed


if __name__ == "__main__":
    unittest.main()
