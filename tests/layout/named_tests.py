"""Tests that a page names: `file::test`, such as `cli/run_test.py::test_x`, which is below tests/, and
`tests/base/text_test.cc::Printable.EscapesIt`."""

import re

TEST_NAME = r"`(?:tests/)?([\w/]+\.(?:py|cc))::([\w.]+)`"


def missing_tests(root, page):
    """Of the tests that the text `page` names, those that do not exist in the repository `root`."""
    missing = []
    for file, test in re.findall(TEST_NAME, page):
        path = root / "tests" / file
        suite, _, name = test.rpartition(".")
        wanted = (rf"\n    def {name}\(self\)" if file.endswith(".py") else
                  rf"\nTEST(_F|_P)?\({suite}, {name}\)")
        if not path.exists() or not re.search(wanted, path.read_text(encoding="utf-8")):
            missing.append(f"{file}::{test}")
    return missing
