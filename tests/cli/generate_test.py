"""`anemone generate`: tokens, their comparison with ONNX Runtime, and errors."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jsonschema
from onnx import helper

from grouped_decoder import grouped_decoder
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

    def test_models_of_genai_are_run_in_place(self):
        for form in ({}, {"block": 16, "packed": False, "kv_dim": "kv_cache_dim"}, {"window": 8}):
            with self.subTest(form):
                path = self.write(grouped_decoder(**form))
                prompt = ",".join(str(token * 7 % 96) for token in range(37))  # parts of 32 and 1, two capacities
                made = self.json(path, "--tokens", prompt, "--max-new", "40", "--compare")
                self.assertIsNone(made["compare"]["first_difference"])
                self.assertGreater(made["compare"]["qualified"], 20)
                done = anemone("generate", path, "--tokens", "5,17,40", "--max-new", "3", "-v")
                self.assertIn("state kept between runs", done.stdout)
                self.assertNotIn("each length is planned", done.stdout)
                self.assertNotIn("above 65504", done.stderr)

    def test_caches_without_a_proof_are_planned_for_each_length(self):
        counted = grouped_decoder(layers=1)  # adds a number that depends on the length to the logits
        counted.graph.node[-1].output[0] = "scores"
        counted.graph.node.extend([
            helper.make_node("Cast", ["/model/attn_mask_reformat/attn_mask_subgraph/Gather/output_0"], ["length"], to=1),
            helper.make_node("Add", ["scores", "length"], ["logits"])])
        less = grouped_decoder(layers=1)  # seqlens_k is not the sum less 1
        for node in less.graph.node:
            if node.op_type == "Sub":
                node.op_type = "Add"
        for made, told in ((counted, "'length' is also read by node"), (less, "is not the sum of the attention mask, less 1")):
            done = anemone("generate", self.write(made), "--tokens", "5,17,40", "--max-new", "2", "-v")
            self.assertIn("each length is planned", done.stdout)
            self.assertIn(told, " ".join(done.stdout.split()))

    def test_exports_of_optimum_are_run_in_place(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                words = (ROOT / "models" / "optimum" / f"{name}.onnx", "--tokens", "5,17,40,2,33")
                made = self.json(*words, "--max-new", "110", "--compare")  # 128 positions in all
                self.assertIsNone(made["compare"]["first_difference"])
                self.assertGreater(made["compare"]["qualified"], 64)
                done = anemone("generate", *words, "--max-new", "70", "-v")
                self.assertNotIn("each length is planned", done.stdout)

    def test_a_merged_decoder_is_an_error(self):
        made = decoder(layers=1)
        made.graph.input.append(helper.make_tensor_value_info("use_cache_branch", 9, [1]))
        done = anemone("generate", self.write(made), "--tokens", "5")
        self.assertEqual(1, done.returncode)
        self.assertIn("the model is a merged decoder", done.stderr)

    def test_caches_of_a_fixed_size_are_taken(self):
        grown = self.json(self.write(decoder()), "--tokens", "5,17,40", "--max-new", "40")["tokens"]
        for operator in ("ScatterND", "TensorScatter"):
            with self.subTest(operator):
                path = self.write(decoder(buffer=64, write=operator))
                made = self.json(path, "--tokens", "5,17,40", "--max-new", "40", "--compare")
                self.assertIsNone(made["compare"]["first_difference"])
                self.assertGreater(made["compare"]["qualified"], 20)
                self.assertEqual(grown, made["tokens"])

    def test_a_token_writes_one_row_of_a_cache_of_a_fixed_size(self):
        written = {}
        for rows in (64, 512):
            path = self.write(decoder(buffer=rows, layers=3), f"{rows}.onnx")
            done = anemone("generate", path, "--tokens", "5,17,40", "--max-new", "3", "-v")
            self.assertNotIn("each run copies all of it", done.stdout)
            profile = self.folder / f"{rows}.json"
            anemone("run", path, "--state", "auto", "--shape", "input_ids=1,1", "--shape", "cache_position=1", "--profile",
                    profile)
            events = json.loads(profile.read_text())
            events = events["traceEvents"] if isinstance(events, dict) else events
            names = [event["name"] for event in events]
            written[rows] = sorted(name for name in names if name.startswith("written to "))
            self.assertEqual(6, len(written[rows]), names)
        self.assertEqual(written[64], written[512])
        self.assertEqual(["written to present.0.key: 32 bytes"], written[64][:1])

    def test_a_compiled_model_writes_one_row_too(self):
        for rows in (64, 512):
            path, package = self.write(decoder(buffer=rows), f"{rows}.onnx"), self.folder / f"{rows}.compiled"
            anemone("compile", path, "--shape", "input_ids=1,1", "--shape", "cache_position=1", "-o", package)
            tokens = ("--tokens", "5,17,40", "--max-new", "20")
            self.assertEqual(self.json(path, *tokens)["tokens"], self.json(package, *tokens)["tokens"])
            profile = self.folder / f"{rows}.json"
            anemone("run", package, "--state", "auto", "--profile", profile)
            text = profile.read_text()
            self.assertEqual(4, text.count(": 32 bytes"))
            self.assertNotIn("to engine: past", text)

    def test_a_context_longer_than_the_positions_is_an_error(self):
        for made, told in ((decoder(layers=1, longest=48), "the positions of the model"),
                           (grouped_decoder(layers=1, longest=48), "the positions of the model"),
                           (decoder(layers=1, buffer=48), "the model's cache of 48")):
            path = self.write(made)
            done = anemone("generate", path, "--tokens", "5,17,40", "--max-new", "60")
            self.assertEqual(1, done.returncode)
            self.assertIn("a context of 49 tokens is longer than " + told, done.stderr)
            self.assertEqual(45, done.stdout.count(","))  # with the last line's end
            self.assertTrue(done.stdout.endswith("\n"))
            done = anemone("generate", path, "--tokens", "5,17,40", "--max-new", "60", "--json")
            self.assertEqual(1, done.returncode)
            document = json.loads(done.stdout)
            jsonschema.validate(document, SCHEMA)
            self.assertEqual(46, len(document["tokens"]))
            self.assertIn("a context of 49 tokens is longer than " + told, document["error"])

    def test_a_context_longer_than_a_table_of_sizes_is_an_error(self):
        # Its causal mask is a slice of a table of 128 rows, so sizes are refused, not positions.
        done = anemone("generate", ROOT / "models" / "optimum" / "gpt2.onnx", "--tokens", "5,17,40", "--max-new", "130")
        self.assertEqual(1, done.returncode)
        self.assertIn("a context of 129 tokens is longer than the model can have: node '/transformer/h.0/attn/Where'",
                      done.stderr)
        self.assertNotIn("reset its state", done.stderr)

    def test_errors_of_other_kinds_do_not_name_a_context(self):
        done = anemone("generate", self.write(decoder()), "--tokens", "5,17,40", "--time-limit", "0.0001")
        self.assertEqual(1, done.returncode)
        self.assertIn("time limit", done.stderr)
        self.assertNotIn("context", done.stderr)

    def test_a_token_that_the_model_does_not_have_is_named(self):
        path = self.write(decoder(layers=1))
        for tokens in ("5,17,9999", ",".join(["5"] * 60 + ["9999"])):
            done = anemone("generate", path, "--tokens", tokens)
            self.assertEqual(2, done.returncode)
            self.assertIn("the model has no token 9999; give tokens", done.stderr)
            self.assertNotIn("context", done.stderr)
            self.assertNotIn("reset", done.stderr)

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
        two = self.write(decoder(layers=1, batch=2), "two.onnx")
        plain = self.write(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1, 4])],
                                 [tensor("y", [1, 4])]), "plain.onnx")
        for code, told, words in (
                (2, "--tokens: give the prompt as token ids", (path,)),
                (2, "want an integer from 0 to 2147483647, got 'a'", (path, "--tokens", "1,a")),
                (2, "--compare: needs the likeliest tokens", (path, "--tokens", "1", "--compare", "--temperature", "1")),
                (2, "top_p 0: want a share above 0", (path, "--tokens", "1", "--top-p", "0")),
                (2, "temperature -1: want 0", (path, "--tokens", "1", "--temperature", "-1")),
                (2, "temperature inf: want 0", (path, "--tokens", "1", "--temperature", "inf")),
                (2, "want a number, got 'nan'", (path, "--tokens", "1", "--temperature", "nan")),
                (2, "repetition_penalty 0: want", (path, "--tokens", "1", "--repetition-penalty", "0")),
                (1, "input 'input_ids' always has 2 rows, want one or any number", (two, "--tokens", "1")),
                (2, "no input and output have a pair of usual names", (plain, "--tokens", "1"))):
            done = anemone("generate", *words)
            self.assertEqual(code, done.returncode, done.stderr)
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()
