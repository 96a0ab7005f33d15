"""Every link of a page to a file, or to a heading of a page, has a target.

Run: python3 tests/layout/links_test.py REPOSITORY. Links to the web are not followed.
"""

import pathlib
import re
import sys
import tempfile
import unittest

import citations

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\))?[^()\s]*)\)")


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*?) *$", _without_code(page), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.replace(" ", "-") for text in words}


def _without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def dead_links(root, page):
    """The dead links of a page, as lines."""
    text, found = (root / page).read_text(encoding="utf-8"), []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "`", _without_code(text))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = ((root / page).parent / name).resolve() if name else root / page
        if not target.exists() or not target.is_relative_to(root):
            found.append(f"{page}: links to {link}, which does not exist")
        elif anchor and anchor not in anchors_of(target.read_text(encoding="utf-8")):
            found.append(f"{page}: links to {link}, and there is no such heading")
    return found


class LinksTest(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        pages = [file for file in citations.files_below(ROOT) if file.endswith(".md")]
        self.assertGreater(len(pages), 15)
        found = [line for page in pages for line in dead_links(ROOT, page)]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_headings_have_a_space(self):
        for page in ROOT.rglob("*.md"):
            if not page.is_relative_to(ROOT / "build") and ".venv" not in page.parts:
                self.assertNotRegex(_without_code(page.read_text(encoding="utf-8")), r"(?m)^#+[A-Za-z]", page)

    def test_every_page_can_be_reached(self):
        """From README.md, by links."""
        reached, left = set(), [ROOT / "README.md"]
        while left:
            page = left.pop()
            if page in reached or page.suffix != ".md" or not page.exists():
                continue
            reached.add(page)
            links = LINK.findall(page.read_text(encoding="utf-8"))
            left += [(page.parent / link.partition("#")[0]).resolve() for link in links
                     if not re.match(r"[a-z]+:", link)]
        pages = {path for path in (ROOT / "docs").rglob("*.md")}
        self.assertEqual(set(), {path.name for path in pages - reached})

    def test_a_dead_link_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "there.md").write_text("# Two words, `code`\n")
            for text, count in [("[a](there.md)", 0), ("[a](there.md#two-words-code)", 0),
                                ("[a](https://example.org/x.md)", 0), ("`[a](gone.md)`", 0),
                                ("```\n[a](gone.md)\n```\n", 0),
                                ("[a](gone.md)", 1), ("[a](there.md#two-words)", 1),
                                ("[a](#here)", 1), ("[a](../there.md)", 1),
                                ("[a](there.md), [b](gone.md), [c](gone.txt)", 2)]:
                (root / "page.md").write_text(text)
                self.assertEqual(count, len(dead_links(root, "page.md")), text)


if __name__ == "__main__":
    unittest.main()
