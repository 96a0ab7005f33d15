"""`anemone confirm`: both routes, missing keys, and verdicts that a script expects."""

import json
import unittest

import jsonschema

from support import ROOT, CliTest, anemone

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "confirm.json").read_text())
SOFTMAX = ("confirm", "softmax", "--input", "1x8x16x16")


class Confirm(CliTest):
    def results(self, *words, code=0):
        done = anemone(*words, "--json")
        self.assertEqual(code, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def test_a_mil_operation_is_asked_on_both_routes(self):
        asked = self.results(*SOFTMAX, "--target", "h13,h12")["results"]
        self.assertEqual([("netplist", "h13"), ("netplist", "h12"), ("mil", "h13"), ("mil", "h12")],
                         [(r["route"], r["target"]) for r in asked])
        self.assertEqual(["native", "rejected", "native", "rejected"], [r["verdict"] for r in asked])
        for route in ("netplist", "mil"):
            asked = self.results(*SOFTMAX, "--route", route)["results"]
            self.assertEqual([route], [r["route"] for r in asked])
        unit = self.results("confirm", "Softmax", "--input", "1x8x16x16")["results"]
        self.assertEqual(["netplist"], [r["route"] for r in unit])

    def test_a_missing_key_is_named_with_its_values(self):
        done = anemone("confirm", "Softmax", "--input", "1x8x16x16")
        text = " ".join(done.stdout.split())
        self.assertIn("Softmax needs the key `Dimension` (", text)
        example = text.split("give --attr ")[1].split()[0]
        self.assertEqual("Dimension=Channel", example)  # not Batch, whose size is 1
        self.assertIn(example.split("=")[1], text.split("`Dimension` (")[1].split(")")[0])
        asked = self.results("confirm", "Softmax", "--input", "1x8x16x16", "--attr", example)["results"]
        self.assertEqual("native", asked[0]["verdict"])
        # One key after the other, until there is nothing missing.
        words = ["confirm", "TopK", "--input", "1x1x1x16", "--target", "h16"]
        for _ in range(8):
            result = self.results(*words)["results"][0]
            if result["rule"] != "invalid-param-syntax":
                break
            self.assertIn("TopK needs the key `", result["remedy"])
            words += ["--attr", result["remedy"].split("give --attr ")[1].replace("'", "")]
        self.assertNotEqual("invalid-param-syntax", result["rule"])

    def test_a_verdict_can_be_expected(self):
        for expected, code in (("native", 0), ("rejected", 3), ("rewritten", 3)):
            document = self.results(*SOFTMAX, "--expect", expected, code=code)
            self.assertEqual((expected, code == 0), (document["expected"], document["as_expected"]))
            done = anemone(*SOFTMAX, "--expect", expected)
            self.assertEqual(code, done.returncode)
            self.assertEqual(code == 3, f"not every verdict is {expected}" in done.stderr)
        mixed = (*SOFTMAX, "--target", "h12,h13", "--route", "netplist")
        for expected in ("native", "rejected"):
            self.assertEqual(3, anemone(*mixed, "--expect", expected).returncode)
        self.assertEqual(0, anemone(*mixed).returncode)
        self.expect_error(anemone(*SOFTMAX, "--expect", "accepted"), "native, rewritten, rejected", code=2)

    def test_a_probe_can_be_expected(self):
        probes = self.write(json.dumps([{"op": "relu", "inputs": [{"shape": [1, 8]}]},
                                        {"op": "softmax", "inputs": [{"shape": [1, 8]}],
                                         "target": "h12"}]).encode(), "p.json")
        self.assertEqual(3, anemone("confirm", "--probe", probes, "--expect", "native").returncode)
        document = self.results("confirm", "--probe", probes, "--expect", "native", code=3)
        self.assertEqual(["native", "rejected"], [r["verdict"] for r in document["results"]])

    def test_a_wrong_number_of_inputs_is_told(self):
        for words, told in ((["Softmax"], "remedy: Softmax takes 1 input, got 0; give --input SHAPE for each"),
                            (["Softmax", "--input", "1x8x4x4", "--input", "1x8x4x4"], "takes 1 input, got 2")):
            self.assertIn(told, " ".join(anemone("confirm", *words).stdout.split()))

    def test_a_missing_argument_has_a_remedy(self):
        self.expect_error(anemone("confirm", "softmax"),
                          "softmax: argument 1 is missing; give --input SHAPE for each argument", code=2)
        self.expect_error(anemone("confirm", "conv", "--input", "1x8x16x16"),
                          "argument 'weight' is missing; give --const weight=SHAPE", code=2)

    def test_targets_of_one_answer_are_joined(self):
        text = anemone(*SOFTMAX, "--target", "h12,h13,h14,h15", "--route", "netplist").stdout
        self.assertRegex(text, r"(?m)^h12   netplist softmax +REJECTED$")
        self.assertRegex(text, r"(?m)^h13, h14, h15\n  netplist softmax +NATIVE  Softmax$")
        every = anemone(*SOFTMAX, "--target", "all").stdout
        self.assertLess(len(every.splitlines()), 40, every)
        self.assertEqual(28 * 2, len(self.results(*SOFTMAX, "--target", "all")["results"]))

    def test_an_error_in_the_call_is_told_once(self):
        done = anemone("confirm", "softmax", "--input", "1x4", "--attr", "axes=1", "--target", "h13,h14")
        self.expect_error(done, "no attribute 'axes'", code=2)
        document = self.results("confirm", "softmax", "--input", "1x4", "--attr", "axes=1", "--expect",
                                "native", code=2)
        self.assertFalse(document["as_expected"])
        self.assertTrue(all("error" in result for result in document["results"]))


if __name__ == "__main__":
    unittest.main()
