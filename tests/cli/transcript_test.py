"""The whole output of commands on small models, as tests/cli/transcript/*.txt keeps it. Who changes a text
sees it here as a user does, and reviews it.

    transcript_test.py ANEMONE REPOSITORY            compares
    transcript_test.py ANEMONE REPOSITORY --write    renews the files

To add a command, write a file with its first line only ("$ anemone check net.onnx"), and renew.
Times, memory, versions and paths are masked, and the digits that depend on a processor's arithmetic.
tests/cli/README.md lists the findings of users with their tests; each of these tests must exist.
"""

import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import support
import transcript_models

sys.path.insert(0, str(support.ROOT / "tests" / "layout"))
import named_tests  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent / "transcript"
RENEW = "tests/cli/transcript_test.py build/release/anemone . --write"


def _near(match):
    """A cosine: how near it is to 1 depends on the processor."""
    text = match.group(1)
    value = 1 - float(text[2:]) if text.startswith("1-") else float(text)
    return "cosine above 0.999" if value > 0.999 else f"cosine {value:.1f}"


def _two_digits(match):
    return f"{float(match.group()):.1e}".rjust(len(match.group()))


def _hidden(match):
    """Stars of the number's width, with the space before it, which is wider if the number is narrower."""
    return "*".rjust(len(match.group()))


MASKS = (
    (r'"version":"[^"]*"', '"version":"*"'),
    (r"cosine (1-[\d.e-]+\d|\d\.\d+)", _near),
    (r"max error [\d.e+-]+ \((?:under )?[\d.e+-]+ %", "max error * (* %"),
    (r"max error (?:under )?[\d.e+-]+ %", "max error * %"),
    (r"\bmax_(abs|rel) [\d.e+-]+\d", r"max_\1 *"),
    (r"(?m)^  (?:Anemone|ONNX Runtime)  .*", lambda row: re.sub(r" +\d+\.\d+", _hidden, row.group())),
    (r" +\d+\.\d+(?= (?:ms|MiB)\b)", _hidden),
    (r" +\d+\.\d+(?=x$)", _hidden),
    (r"(?m)^  \S+ +\d+x\d+ +\d+ +\d+ .*", lambda row: re.sub(r" +\d\.\d+", _hidden, row.group())),
    (r"(?m)^  (?:overflow|port-saturation) .*\d$",
     lambda row: re.sub(r"(?<= )[\d.]{5,}(?:e\+\d+)?(?=$| )", _two_digits, row.group())),
)
PROGRESS = re.compile(r"anemone: .* \.\.\.|anemone: measuring .*|.*WARNING: AddressSanitizer.*")


def masked(text, folder):
    text = text.replace(str(folder), "FOLDER").replace(str(support.ROOT), "REPOSITORY")
    for pattern, put in MASKS:
        text = re.sub(pattern, put, text, flags=re.MULTILINE)
    return "".join(line + "\n" for line in text.splitlines() if not PROGRESS.fullmatch(line))


def transcript(command, folder):
    """The command line, and what it does in a folder with the models of transcript_models.py."""
    words = shlex.split(command)
    assert words[:1] == ["anemone"], command
    done = subprocess.run([support.ANEMONE.resolve(), *words[1:]], cwd=folder, capture_output=True,
                          text=True, timeout=120, env=support.environment(COLUMNS="80", NO_COLOR="1"))
    parts = [f"$ {command}\n[exit {done.returncode}]\n"]
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        text = masked(text, folder)
        if text:
            parts.append(f"[{name}]\n{text}")
    return "".join(parts)


def kept():
    return sorted(FOLDER.glob("*.txt"))


def run_again(path):
    command = path.read_text().split("\n", 1)[0].removeprefix("$ ")
    with tempfile.TemporaryDirectory() as folder:
        transcript_models.write(pathlib.Path(folder))
        return transcript(command, pathlib.Path(folder))


class Transcripts(unittest.TestCase):
    def test_outputs_are_as_they_are_kept(self):
        self.assertGreaterEqual(len(kept()), 30)
        for path in kept():
            with self.subTest(path.stem):
                made, old = run_again(path), path.read_text()
                difference = "".join(difflib.unified_diff(
                    old.splitlines(True), made.splitlines(True), f"transcript/{path.name}", "now"))
                self.assertEqual("", difference, f"\n{difference}If the new text is right: {RENEW}\n")

    def test_masks_hide_times_and_keep_the_rest(self):
        for text, wanted in (
                ("y: float32 4, cosine 0.999999, max error 3.8e-05 (0.03 % of the output range)",
                 "y: float32 4, cosine above 0.999, max error * (* % of the output range)"),
                ("cosine 1-1.4e-7, want >= 0.9999999999", "cosine above 0.999, want >= 0.9999999999"),
                ("cosine 0.5123, x", "cosine 0.5, x"),
                ("  Anemone            34.8      0.3", "  Anemone               *        *"),
                ("  peak memory       14.82 MiB     0.39x", "  peak memory           * MiB        *x"),
                ("3 nodes: 2 engine; 1.29 M MACs", "3 nodes: 2 engine; 1.29 M MACs"),
                ("  overflow  /#2 'sum'  0  1 of 1  1.03936e+06  63744",
                 "  overflow  /#2 'sum'  0  1 of 1      1.0e+06  6.4e+04")):
            self.assertEqual(wanted + "\n", masked(text, "/none"))

    def test_the_text_of_a_missed_change_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            transcript_models.write(pathlib.Path(folder))
            made = transcript("anemone check none.onnx", pathlib.Path(folder))
        self.assertEqual("$ anemone check none.onnx\n[exit 1]\n[stderr]\n"
                         "anemone: error: none.onnx: no such file; check the path\n", made)


class Findings(unittest.TestCase):
    def test_every_finding_has_tests_that_exist(self):
        page = (pathlib.Path(__file__).resolve().parent / "README.md").read_text()
        rows = [row[0] for row in re.findall(rf"(?m)^\| (\d+) \|.*{named_tests.TEST_NAME}.*\|$", page)]
        self.assertGreater(len(rows), 30)
        self.assertEqual([str(number + 1) for number in range(len(rows))], rows)
        self.assertEqual([], named_tests.missing_tests(support.ROOT, page))

    def test_a_missing_test_is_seen(self):
        self.assertEqual(["cli/support.py::test_x", "cli/run_test.py::test_none"], named_tests.missing_tests(
            support.ROOT, "`cli/support.py::test_x` `cli/run_test.py::test_none` "
            "`cli/run_test.py::test_inputs_are_told` `provider/session_test.cc::Session.RunsOneEngineSegment`"))


if __name__ == "__main__":
    if "--write" in sys.argv:
        for path in kept():
            path.write_text(run_again(path))
    else:
        unittest.main()
