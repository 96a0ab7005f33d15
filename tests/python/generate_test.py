"""generate() of the Python package: the same tokens as passing the cache by hand to ONNX Runtime, and
samples as NumPy computes them."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
from grouped_decoder import grouped_decoder  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from small_decoder import decoder  # noqa: E402
from support import PackageTest  # noqa: E402

PROMPT = [5, 17, 40, 2, 33]
OPTIMUM = pathlib.Path(__file__).resolve().parents[2] / "models" / "optimum"
FEEDS = {"input_ids": np.arange(32)[None] % 19, "attention_mask": np.ones((1, 32), np.int64),
         "position_ids": np.arange(32)[None], "cache_position": np.arange(32)}
BOUND = 1 / 128  # of the largest logit: what fp16 may change


class Reference:
    """A decoder on ONNX Runtime, with its cache passed by hand."""

    def __init__(self, made):
        self.session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.cache = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)
                      for i in self.session.get_inputs() if i.name.startswith("past")}
        self.past = 0

    def logits(self, tokens):
        n = len(tokens)
        feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, self.past + n), np.int64),
                 "position_ids": np.arange(self.past, self.past + n)[None], **self.cache}
        known = {i.name for i in self.session.get_inputs()}
        made = dict(zip(self.outputs, self.session.run(None, {k: v for k, v in feeds.items() if k in known})))
        self.cache = {k: made[k.replace("past_key_values", "present")] for k in self.cache}
        self.past += n
        return made["logits"][0, -1]


def shares_of(logits, seen, temperature, top_k, top_p, penalty):
    """The shares of tokens, as the sampling options say."""
    scores = logits.astype(np.float64)
    for token in set(seen):
        scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    order = np.argsort(-scores, kind="stable")[: top_k or len(scores)]
    shares = np.exp((scores[order] - scores[order[0]]) / temperature)
    shares /= shares.sum()
    keep = np.concatenate([[0], np.cumsum(shares)[:-1]]) < top_p
    made = np.zeros(len(scores))
    made[order[keep]] = shares[keep] / shares[keep].sum()
    return made


class Generate(PackageTest):
    def test_greedy_tokens_are_those_of_onnx_runtime(self):
        for learned in (True, False):
            with self.subTest(learned=learned):
                made = decoder(learned=learned)
                count = 64 if learned else 6  # without position_ids each length is planned
                got = list(ane.generate(made, PROMPT, max_new=count))
                self.assertEqual(count, len(got))
                reference, given, qualified = Reference(made), PROMPT, 0
                for token in got:
                    logits = reference.logits(given)
                    first, second = np.sort(logits)[:-3:-1]
                    if first - second > BOUND * abs(logits).max():
                        qualified += 1
                        self.assertEqual(logits.argmax(), token)
                    given = [token]
                self.assertGreater(qualified, count // 2)

    def test_a_long_prompt_runs_in_parts(self):
        made = decoder(layers=1)
        prompt = np.random.default_rng(4).integers(0, 64, 75).tolist()
        token, = ane.generate(made, prompt, max_new=1)
        logits = Reference(made).logits(prompt)
        self.assertGreater(logits[token], np.sort(logits)[-2] - BOUND * abs(logits).max())

    def test_the_last_token_alone_has_the_logits_that_it_has_among_all(self):
        forms = {"products": decoder(), "positions of the cache": decoder(learned=False), "batch": decoder(batch="batch_size"),
                 "fixed cache": decoder(buffer=64), "grouped": grouped_decoder(), "apart": grouped_decoder(packed=False),
                 "4 bits": grouped_decoder(block=16), "gpt2": OPTIMUM / "gpt2.onnx", "llama": OPTIMUM / "llama.onnx"}
        for name, made in forms.items():
            with self.subTest(name):
                logits = []
                for last in (False, True):
                    session = ane.Session(made, state="auto", last_logits=last)
                    feeds = {port.name: FEEDS[port.name] for port in session.inputs if port.name in FEEDS}
                    logits.append(session.run(feeds)["logits"])
                    self.assertEqual(last, "logits: those of the last token only" in str(session))
                every, one = logits
                self.assertEqual((1, 1, every.shape[2]), one.shape)
                np.testing.assert_allclose(every[:, -1:], one, atol=BOUND / 4 * abs(every).max())

    def test_numbers_that_do_not_fit(self):
        made = decoder()
        for tokens, words, told in (([1, 2**70], {}, "tokens: want a number from 0 to"), ([-1], {}, "tokens"),
                                    ([1], {"max_new": -1}, "max_new"), ([1], {"seed": 2**64}, "seed"),
                                    ([1], {"seed": -1}, "seed"), ([1], {"top_k": 2**63}, "top_k")):
            with self.subTest(told), self.assertRaisesRegex(ValueError, told):
                list(ane.generate(made, tokens, **words))

    def test_stop_and_seed(self):
        made = decoder(layers=1)
        greedy = list(ane.generate(made, PROMPT, max_new=8))
        stopped = list(ane.generate(made, PROMPT, max_new=8, stop=[greedy[3]]))
        self.assertEqual(greedy[: greedy.index(greedy[3]) + 1], stopped)
        drawn = [list(ane.generate(made, PROMPT, max_new=12, temperature=1.5, seed=seed)) for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(greedy, list(ane.generate(made, PROMPT, max_new=8, temperature=3, top_k=1)))

    def test_prompts_of_a_batch_have_the_tokens_of_each(self):
        for made, count in ((decoder(layers=1), 64), (grouped_decoder(layers=1), 96)):
            prompts = [[5, 17, 40], [2], list(range(40))]
            alone = [list(ane.generate(made, prompt, max_new=9)) for prompt in prompts]
            rows = list(ane.generate_batch(made, prompts, max_new=9))
            self.assertEqual(alone, [list(column) for column in zip(*rows)])
            stopped = list(ane.generate_batch(made, prompts, max_new=9, stop=[alone[0][1]]))
            self.assertIn(None, [row[0] for row in stopped[2:]])
            self.assertTrue(all(0 <= token < count for row in rows for token in row))
        self.assertEqual([], list(ane.generate_batch(made, [])))

    def test_prompts_of_one_length_are_one_batch(self):
        made = decoder(batch="batch_size")
        prompts = np.random.default_rng(6).integers(0, 64, (4, 37)).tolist()
        rows = list(zip(*ane.generate_batch(made, prompts, max_new=30)))
        for prompt, got in zip(prompts, rows):
            reference, given, qualified = Reference(made), prompt, 0
            for token in got:
                logits = reference.logits(given)
                first, second = np.sort(logits)[:-3:-1]
                if first - second > BOUND * abs(logits).max():
                    qualified += 1
                    self.assertEqual(logits.argmax(), token)
                given = [token]
            self.assertGreater(qualified, len(got) // 2)
        stop = rows[1][3]
        stopped = list(zip(*ane.generate_batch(made, prompts, max_new=30, stop=[stop])))
        for row, all_tokens in zip(stopped, rows):
            end = all_tokens.index(stop) + 1 if stop in all_tokens else len(row)
            self.assertEqual(all_tokens[:end], row[:end])
            self.assertEqual({None} if end < len(row) else set(), set(row[end:]))
        drawn = [list(ane.generate_batch(made, prompts[:2], max_new=8, temperature=1.5, seed=seed)) for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    @unittest.skipUnless(importlib.util.find_spec("tokenizers"), "the package tokenizers is not installed")
    def test_a_text_is_encoded(self):
        from tokenizers import Tokenizer, models, pre_tokenizers

        words = {f"w{i}": i for i in range(63)}
        tokenizer = Tokenizer(models.WordLevel({**words, "[UNK]": 63}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            tokenizer.save(str(path))
            made = decoder(layers=1)
            got = list(ane.generate(made, "w5 w17 else", tokenizer=path, max_new=5))
            self.assertEqual(list(ane.generate(made, [5, 17, 63], max_new=5)), got)
            self.assertEqual([f"w{i}" for i in got if i < 63], tokenizer.decode(got).replace("[UNK]", "").split())

    def test_wrong_use_is_named(self):
        for told, kind, words in (
                ("the prompt has no token", ValueError, {"tokens": []}),
                ("top_p 0: want a share above 0", ValueError, {"tokens": [1], "top_p": 0.0}),
                ("temperature -1: want 0", ValueError, {"tokens": [1], "temperature": -1.0}),
                ("which need none; give a text", TypeError, {"tokens": [1], "tokenizer": "tokenizer.json"}),
                ("a text needs tokenizer=", TypeError, {"tokens": "text"})):
            with self.assertRaisesRegex(kind, told):
                list(ane.generate(decoder(layers=1), **words))
        with self.assertRaisesRegex(ValueError, "no input and output have a pair of usual names"):
            list(ane.generate(self.plain(), [1]))

    def plain(self):
        made = decoder(layers=1)
        for value in [*made.graph.input, *made.graph.output]:
            value.name = value.name.replace("present.0", "other")
        for node in made.graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = name.replace("present.0", "other")
        return made

    def test_logits_that_are_no_numbers_are_an_error(self):
        made = decoder()
        for node in made.graph.node:
            node.output[:] = ["small" if name == "logits" else name for name in node.output]
        made.graph.initializer.append(numpy_helper.from_array(np.float32(60000), "large"))
        made.graph.node.extend([helper.make_node("Mul", ["small", "large"], ["larger"]),
                                helper.make_node("Mul", ["larger", "large"], ["infinite"]),
                                helper.make_node("Sub", ["infinite", "infinite"], ["logits"])])
        with self.assertRaisesRegex(RuntimeError, "logits after 5 tokens have NaN"):
            list(ane.generate(made.SerializeToString(), PROMPT, max_new=2))

    def test_an_adapter_with_a_name_would_not_be_used(self):
        with self.assertRaisesRegex(ValueError, "adapter 'a': all tokens are generated with"):
            list(ane.generate(decoder().SerializeToString(), PROMPT, adapters={"a": "/none.safetensors"}))


class Sampling(unittest.TestCase):
    def test_shares_are_those_of_numpy(self):
        random = np.random.default_rng(5)
        for temperature, top_k, top_p, penalty in ((1, 0, 1, 1), (0.7, 5, 1, 1), (1.3, 0, 0.6, 1.2), (2, 9, 0.8, 0.9)):
            logits = random.standard_normal(40).astype(np.float32) * 3
            seen = [3, 7, 3, 39]
            got = ane._anemone.token_shares(logits.tolist(), seen, temperature, top_k, top_p, penalty)
            np.testing.assert_allclose(shares_of(logits, seen, temperature, top_k, top_p, penalty), got, atol=1e-12)
        self.assertEqual(1, ane._anemone.token_shares([0.0, 2.0, 2.0, float("nan")], [], 0, 0, 1, 1)[1])


if __name__ == "__main__":
    unittest.main()
