"""Every source cited in code, tables, pages and `anemone check --json` is a row of a file.

Run: python3 tests/layout/citations_test.py REPOSITORY [ANEMONE]. ANEMONE is the command; without
it, its output is not checked. citations.py defines citations and their rows.
"""

import json
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile
import unittest

import citations

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]
ANEMONE = sys.argv.pop(1) if len(sys.argv) > 1 else None
README = "docs/sources/README.md"
MODELS = ["bert_eager_dynamo", "detr_dynamo", "stereo_dynamo", "tracker_dynamo"]

# Names in comments and pages of files of other projects, and of files that the build writes.
ELSEWHERE = {
    "RESULTS.md": "Orion's repository",
    "docs/onnx.md": "ANEForge's repository",
    "execution-providers/CoreML-ExecutionProvider.md": "ONNX Runtime's documentation",
    "tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md": "ONNX Runtime's repository",
    "foreach_target.h": "Highway",
    "hwy/foreach_target.h": "Highway",
    "onnx/defs/parser.h": "ONNX",
    "build/setup.cmake": "tools/setup",
    "numerics.cc": "cmake/generate_numerics.py",
    "numerics.h": "cmake/generate_numerics.py",
    "cost_table.cc": "cmake/generate_tables.py",
    "anemone-self-test.json": "tools/command/self_test.cc",
    "apple_fact_table.h": "cmake/generate_tables.py",
    "device_limit_table.h": "cmake/generate_tables.py",
    "hidden_layer_table.cc": "cmake/generate_tables.py",
    "mil_operation_table.cc": "cmake/generate_tables.py",
    "Manifest.json": "a Core ML package",
    "netplist_table.cc": "cmake/generate_tables.py",
    "rule_table.cc": "cmake/generate_tables.py",
    "rule_table.h": "cmake/generate_tables.py",
    "table_hash.cc": "cmake/generate_tables.py",
    "target_fields.h": "cmake/generate_tables.py",
    "target_table.cc": "cmake/generate_tables.py",
    "warning_table.h": "cmake/generate_tables.py",
    "folder/x_y.cc": "an example",
    "engine/clock_range.h": "docs/adding/data_table.patch",
    "engine/tables/clocks.json": "docs/adding/data_table.patch",
    "engine/tables/rules/channel_shuffle.json": "docs/adding/unit.patch",
    "kernels/units/channel_shuffle.cc": "docs/adding/unit.patch",
}
SEEDS = "docs/sources/seeds/"  # texts of others, which cite nothing here
ORION_FILES = "orion-repo"  # the key that describes another repository's files
OURS = ("anemone", "")  # the printed source of Anemone's own refusals


def sources_of(readme):
    """The files of the table in docs/sources/README.md, name -> path."""
    found = re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\)", readme, re.MULTILINE)
    return {name: posixpath.normpath(posixpath.join(posixpath.dirname(README), link))
            for name, link in found}


def publications_of(readme):
    """The words that a source may begin with instead of a file."""
    return tuple(re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE))


def problems_of_source(source, repository, publications):
    """The problems of one printed "source"."""
    block = citations.Block(0, source, "source")
    cited = list(citations.citations_in(block))
    found = [p for p in (repository.problem(c, source) for c in cited) if p]
    begins = source.startswith(publications) or bool(citations.FILE.match(source))
    if not begins:
        found.append(f"'{source}': begins with neither a file nor a publication of {README}")
    return found + problems_of_seeds(source, repository)


def problems_of_seeds(text, repository):
    """`seed 003 section 7.5`, `seed 004 table 17.2`: the seed has that heading or caption."""
    found = []
    pattern = r"seed (\d{3})(?: (section|table|figure)s? ([A-Z]?[\d.]*\d))?"
    for seed, kind, number in re.findall(pattern, text):
        name = next((n for n in repository.sources if n.startswith(seed + "_")), None)
        if name is None:
            found.append(f"'{text[:80]}': there is no seed {seed}")
        elif kind:
            seed_text = (repository.root / repository.sources[name]).read_text(encoding="utf-8")
            mark = rf"^#+ {re.escape(number)} " if kind == "section" else \
                rf"{kind} {re.escape(number)}\b"
            if not re.search(mark, seed_text, re.MULTILINE | re.IGNORECASE):
                found.append(f"'{text[:80]}': seed {seed} has no {kind} {number}")
    return found


class CitationsTest(unittest.TestCase):
    maxDiff = None
    @classmethod
    def setUpClass(cls):
        readme = (ROOT / README).read_text()
        cls.repository = citations.Repository(ROOT, sources_of(readme), ELSEWHERE)
        cls.publications = publications_of(readme)
        cls.blocks = [(file, block) for file in cls.repository.files
                      if not file.startswith(SEEDS)
                      and pathlib.Path(file).suffix not in (".onnx", ".pb", ".gz")
                      for block in citations.blocks_of(ROOT / file) if block.key != ORION_FILES]
        cls.cited = [(file, citation) for file, block in cls.blocks
                     for citation in citations.citations_in(block)]

    def expect_none(self, problems):
        self.assertEqual([], sorted(set(problems)), "\n" + "\n".join(sorted(set(problems))))

    def test_every_citation_leads_somewhere(self):
        problems = [self.repository.problem(citation, file) for file, citation in self.cited]
        self.expect_none(p for p in problems if p)
        rows = sum(len(c.rows) + len(c.quotes) for _, c in self.cited)
        self.assertGreater(len(self.cited), 1000)
        self.assertGreater(rows, 400)  # fewer: comments are not parsed

    def test_sources_of_our_tables_begin_with_what_is_known(self):
        ours = [block.text for file, block in self.blocks
                if file.startswith("engine/tables/")
                and block.key in ("source", "family_source", "limit_source")]
        self.assertGreater(len(ours), 500)
        self.expect_none(p for source in ours for p in
                         problems_of_source(source, self.repository, self.publications))

    def test_every_seed_has_what_is_cited_of_it(self):
        self.expect_none(p for _, block in self.blocks
                         for p in problems_of_seeds(block.text, self.repository))

    def test_ids_in_tables_are_rows(self):
        """"conflict": "C-sdpa-mask"; "texts_see": "ct-..."; "template_see"."""
        rows = {"conflict": [self.repository.rows(self.repository.sources[name])
                             for name in ("conflicts.md", "numerics.json")],
                "see": [self.repository.rows(self.repository.sources["compiler_texts.json"])]}
        wrong, seen = [], 0
        for file, block in self.blocks:
            kind = "conflict" if block.key in ("conflict", "conflicts") else \
                "see" if block.key in ("texts_see", "template_see") else None
            if kind and " " not in block.text:
                seen += 1
                if not any(r.has_row(block.text) for r in rows[kind]):
                    wrong.append(f"{file}: {block.key} {block.text} is nowhere")
        self.expect_none(wrong)
        self.assertGreater(seen, 250)

    def test_every_source_is_cited(self):
        cited = {self.repository.find(c.file, file) for file, c in self.cited
                 if file not in (README, self.repository.find(c.file, file))}
        kept = {file for file in self.repository.files if file.startswith("docs/sources/")}
        self.assertEqual(set(), kept - cited - {README})
        self.assertEqual(set(), kept - set(self.repository.sources.values()) - {README})

    def test_no_name_is_excused_in_vain(self):
        self.assertEqual(set(), set(ELSEWHERE) - {citation.file for _, citation in self.cited})

    @unittest.skipUnless(ANEMONE, "no command is given")
    def test_printed_sources_lead_somewhere(self):
        models = [str(ROOT / "models" / "exported" / f"{name}.onnx") for name in MODELS]
        printed, words = set(), set()
        for arguments in (["check", *models, "--target", "h13,h16,m11"],
                          ["check", *models, "--target", "m1", "--route", "mil"],
                          ["units"], ["targets"]):
            done = subprocess.run([ANEMONE, *arguments, "--json"], capture_output=True, text=True,
                                  check=True)
            blocks = list(citations.strings_of(json.loads(done.stdout)))
            printed |= {block.text for block in blocks
                        if block.key == "source" and block.text not in OURS}
            words |= {block for block in blocks if block.key in ("message", "remedy", "condition")}
        self.assertGreater(len(printed), 100)
        self.expect_none(p for source in printed for p in
                         problems_of_source(source, self.repository, self.publications))
        self.expect_none(p for block in words for citation in citations.citations_in(block)
                         if (p := self.repository.problem(citation, block.text)))


class WrongCitations(unittest.TestCase):
    """The test finds wrong citations: a small repository has one of each kind."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        files = {
            "docs/sources/facts.json": '{"rules": [{"id": 7, "name": "mac-tile"}], "value": 9}',
            "docs/sources/notes.md": "# Notes\n\n## 2. Sums\n\n**C-one** two `Conv` of `x`.\n",
            "docs/sources/001_ab.txt": "Table B.1. A caption.\n",
            "math/sum.h": "// A header.\n",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.root = root
        self.repository = citations.Repository(
            root, {name.rpartition("/")[2]: name for name in files if "sources" in name}, {"o.md"})

    def problems(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)
        return [problem for block in citations.blocks_of(self.root / file)
                for citation in citations.citations_in(block)
                if (problem := self.repository.problem(citation, file))]

    def test_right_ones_pass(self):
        for file, text in [("a.cc", "// Facts: facts.json mac-tile; notes.md C-one.\n"),
                           ("a.cc", "int a;  // facts.json 7\n"),
                           ("a.cc", "// As notes.md\n// section 2 says, and math/sum.h.\n"),
                           ("a.cc", 'Say("see docs/sources/notes.md");\n'),
                           ("a.cc", '// (notes.md, "two Conv of x").\n'),
                           ("a.cc", "// facts.json mac-*; facts.json says more; o.md X.\n"),
                           ("a.py", '"""Reads facts.json mac-tile."""\n'),
                           ("a.json", '{"source": "facts.json rules mac-tile (ch1); notes.md"}'),
                           ("docs/a.md", "Of `facts.json` 8 are known: notes.md Conv.\n")]:
            self.assertEqual([], self.problems(file, text), text)

    def test_wrong_ones_are_seen(self):
        for file, text in [("a.cc", "// Facts: fact.json mac-tile.\n"),
                           ("a.cc", "// Facts: facts.json mac-tiles.\n"),
                           ("a.cc", "// Facts: facts.json mac-tile, mac-none.\n"),
                           ("a.cc", "// Facts: facts.json none).\n"),
                           ("a.cc", "// Facts: facts.json pool-*.\n"),
                           ("a.cc", "int a;  // facts.json 9\n"),
                           ("a.cc", "// As notes.md\n// section 3 says.\n"),
                           ("a.cc", "// See engine/math/sum.h.\n"),
                           ("a.cc", 'Say("see docs/"\n    "notes.md");\n'),
                           ("a.cc", '// (notes.md, "three Conv").\n'),
                           ("a.py", '"""Reads facts.json mac-tiles."""\n'),
                           ("CMakeLists.txt", "# Facts: notes.md C-two.\n"),
                           ("a.json", '{"source": "notes.md; facts.json other words"}'),
                           ("docs/a.md", "| a | notes.md C-two |\n")]:
            self.assertEqual(1, len(self.problems(file, text)), text)

    def test_sources_and_seeds(self):
        for source, count in [("guide ch4 (seed 001 table B.1)", 0), ("facts.json mac-tile", 0),
                              ("guide ch4 (seed 001 table B.2)", 1), ("seed 002", 1),
                              ("hearsay", 1), ("facts.json mac-none; ch3", 1)]:
            found = problems_of_source(source, self.repository, ("guide", "seed"))
            self.assertEqual(count, len(found), (source, found))


if __name__ == "__main__":
    unittest.main()
