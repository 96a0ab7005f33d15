"""Estimated times: docs/costs.md is up to date, its errors do not grow, and the worked cases come out."""

import json
import sys
import unittest

from support import ANEMONE, ROOT, CliTest, anemone

sys.path.insert(0, str(ROOT / "tools" / "costs"))
import page  # noqa: E402
import programs  # noqa: E402

# Percent. Of the estimates before products, ports and streams had rates of their own.
MEDIAN_BEFORE, WORST_BEFORE = 16, 45


class Costs(CliTest):
    def check(self, path, target, policy="max-engine"):
        done = anemone("check", path, "--target", target, "--policy", policy, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)["models"][0]["targets"][0]

    def warning(self, plan, rule):
        return next((w for w in plan["warnings"] if w["rule"] == rule), None)

    def test_the_page_is_up_to_date(self):
        self.assertEqual((ROOT / "docs" / "costs.md").read_text(encoding="utf-8"), page.page(str(ANEMONE)))

    def test_errors_do_not_grow(self):
        _, errors = page.times(str(ANEMONE), self.folder)
        self.assertLessEqual(sorted(errors)[len(errors) // 2], MEDIAN_BEFORE)
        self.assertLessEqual(max(errors), WORST_BEFORE)

    def test_a_decode_step_of_gpt2_is_faster_on_the_cpu(self):
        published_ms = page.figures()["gpt2_cpu_decode_p50"]["value"]
        path = programs.Decode(1).save(self.folder)
        most, best = self.check(path, "h16g"), self.check(path, "h16g", "latency")
        cpu_us = most["summary"]["cpu_us"]
        self.assertAlmostEqual(1, cpu_us / 1000 / published_ms, delta=0.1)
        self.assertGreater(most["summary"]["estimate_us"], cpu_us)
        self.assertIsNotNone(self.warning(most, "slower-than-cpu"))
        self.assertEqual(0, best["summary"]["engine_segments"])
        self.assertEqual(cpu_us, best["summary"]["estimate_us"])
        self.assertIsNone(self.warning(best, "slower-than-cpu"))

    def test_at_the_rates_of_an_m5_one_segment_is_faster_than_the_cpu(self):
        path = programs.Decode(1).save(self.folder)
        plan = self.check(path, "h17s", "latency")
        self.assertEqual(1, plan["summary"]["engine_segments"])
        self.assertLess(plan["summary"]["estimate_us"], plan["summary"]["cpu_us"])

    def test_the_papers_split_of_gpt2_loses_in_numbers(self):
        decode = programs.Decode(programs.LEAST_ROWS)
        path = decode.save(self.folder)
        split = "refuse:" + ",".join(f"node:{name}" for name in decode.on_cpu)
        plan = self.check(path, "h16g", split)
        self.assertEqual(programs.LAYERS + 1, plan["summary"]["engine_segments"])
        published_ms = page.figures()["gpt2_ane_decode_latency"]["value"]
        self.assertAlmostEqual(1, plan["summary"]["estimate_us"] / 1000 / published_ms, delta=0.3)
        self.assertRegex(self.warning(plan, "slower-than-cpu")["message"],
                         r"13 segments with .* ms of work cost 1\.43 ms of dispatches and .* us of transfers")
        done = anemone("check", path, "--target", "h16g", "--policy", split)
        self.assertIn("[slower-than-cpu] plan: 13 segments", done.stdout)

    def test_a_large_softmax_stays_on_the_engine(self):
        (program, cpu_us), = [made for made in programs.of_m4_max(page.figures()) if "softmax" in made[0].words]
        path = self.write(program.model)
        plan = self.check(path, program.target, "latency")
        self.assertEqual(1, plan["summary"]["engine_segments"])
        self.assertAlmostEqual(1, plan["summary"]["cpu_us"] / cpu_us, delta=0.01)
        self.assertGreater(plan["summary"]["cpu_us"] / plan["summary"]["estimate_us"],
                           cpu_us / program.published_us)

    def test_the_policy_says_where_it_knows_no_cpu(self):
        path = self.write(programs.convolution(3, 64, 64, 16))
        plan = self.check(path, "h13", "latency")
        self.assertIn("max-engine", self.warning(plan, "no-cpu-rates")["message"])
        self.assertIn("[no-cpu-rates]", anemone("check", path, "--policy", "latency").stdout)


if __name__ == "__main__":
    unittest.main()
