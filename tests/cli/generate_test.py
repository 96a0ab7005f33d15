"""`anemone generate`: tokens, their comparison with ONNX Runtime, and errors."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jsonschema
from onnx import helper

from small_decoder import decoder
from support import ROOT, CliTest, anemone, model, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "generate.json").read_text())


class Generate(CliTest):
    def json(self, *words):
        done = anemone("generate", *words, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def test_tokens_are_printed_and_compared(self):
        path = self.write(decoder())
        made = self.json(path, "--tokens", "5,17,40", "--max-new", "40", "--compare")
        self.assertEqual([5, 17, 40], made["prompt"])
        self.assertEqual(40, len(made["tokens"]))
        self.assertIsNone(made["compare"]["first_difference"])
        self.assertGreater(made["compare"]["qualified"], 20)
        done = anemone("generate", path, "--tokens", "5,17,40", "--max-new", "40")
        first, last = done.stdout.splitlines()
        self.assertEqual(",".join(map(str, made["tokens"])), first)
        self.assertIn("tokens/s after it", last)

    def test_sampling_stops_and_seeds(self):
        path = self.write(decoder(layers=1))
        words = (path, "--tokens", "1", "--max-new", "12")
        greedy = self.json(*words)["tokens"]
        self.assertEqual(greedy[:greedy.index(greedy[2]) + 1], self.json(*words, "--stop", greedy[2])["tokens"])
        warm = (*words, "--temperature", "2", "--top-k", "20", "--top-p", "0.9", "--repetition-penalty", "1.1")
        self.assertEqual(self.json(*warm, "--seed", "3")["tokens"], self.json(*warm, "--seed", "3")["tokens"])
        self.assertNotEqual(self.json(*warm, "--seed", "3")["tokens"], self.json(*warm, "--seed", "4")["tokens"])

    def test_wrong_use_is_told(self):
        path = self.write(decoder(layers=1))
        plain = self.write(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1, 4])],
                                 [tensor("y", [1, 4])]), "plain.onnx")
        for code, told, words in (
                (2, "--tokens: give the prompt as token ids", (path,)),
                (2, "want an integer from 0 to 2147483647, got 'a'", (path, "--tokens", "1,a")),
                (2, "--compare: needs the likeliest tokens", (path, "--tokens", "1", "--compare", "--temperature", "1")),
                (1, "top_p 0: want a share above 0", (path, "--tokens", "1", "--top-p", "0")),
                (2, "no input and output have a pair of usual names", (plain, "--tokens", "1"))):
            done = anemone("generate", *words)
            self.assertEqual(code, done.returncode, done.stderr)
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()
