"""Each row of docs/known_attacks.md, and of the tables of SECURITY.md, names tests that exist.

Run: python3 tests/layout/attacks_test.py REPOSITORY.
"""

import pathlib
import re
import sys
import unittest

import named_tests

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()


class KnownAttacks(unittest.TestCase):
    def test_every_attack_has_tests_that_exist(self):
        page = (ROOT / "docs" / "known_attacks.md").read_text(encoding="utf-8")
        rows = [row for row in page.splitlines()
                if row.startswith("| ") and not row.startswith("| item |")]
        self.assertGreater(len(rows), 35)
        self.assertEqual([], [row for row in rows if not re.search(named_tests.TEST_NAME, row)])
        self.assertEqual([], named_tests.missing_tests(ROOT, page))

    def test_every_promise_and_limit_has_tests_that_exist(self):
        page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
        rows = [row for row in page.splitlines()
                if row.startswith("| ") and not re.match(r"\| (promise|limit|what|fault) \|", row)]
        self.assertGreater(len(rows), 25)
        self.assertEqual([], [row for row in rows if not re.search(named_tests.TEST_NAME, row)])
        self.assertEqual([], named_tests.missing_tests(ROOT, page))
        # Every limit that is an option is in the table.
        table = (ROOT / "base" / "model_limits.cc").read_text(encoding="utf-8")
        limits = re.findall(r'\{ModelLimit::k\w+, "([a-z-]+)"', table)
        self.assertGreater(len(limits), 10)
        self.assertEqual([], [name for name in limits if f"`{name}`" not in page])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
