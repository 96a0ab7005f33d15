"""The pages of `anemone zoo` in a browser: what they say first, sorting, the filter, the targets, and every link.

    zoo_site_test.py ANEMONE REPOSITORY [--pictures]

--pictures: takes the pictures of docs/images, of all models in models/exported, and does not test.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from onnx import TensorProto, helper

from support import ANEMONE, ROOT, environment, model, tensor

sys.path.insert(0, str(ROOT / "tests" / "browser"))
import driver  # noqa: E402

HOSTILE = "</script><b>'\"&\u202egnp.onnx".replace("/", "\u2044")


def chain(*operators):
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    return model(nodes, [tensor("v0", [1, 8])], [tensor(f"v{len(operators)}", [1, 8])])


def on_the_cpu():
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("NonZero", ["y"], ["z"])]
    return model(nodes, [tensor("x", [1, 8])], [tensor("z", [2, "n"], TensorProto.INT64)])


def make_zoo(sources, out, *more):
    words = [ANEMONE, "zoo", *sources, "-o", out, "--target", "m1,m4", "-q", *more]
    subprocess.run([str(word) for word in words], env=environment(), stdout=subprocess.DEVNULL, check=False)


@unittest.skipIf(driver.why_not(), driver.why_not())
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        models = cls.folder / "models"
        models.mkdir()
        for name, made in [(HOSTILE, on_the_cpu()), ("whole.onnx", chain("Relu", "Sigmoid")),
                           ("x" * 200 + ".onnx", chain("Relu"))]:
            (models / name).write_bytes(made.SerializeToString())
        (models / "bad.onnx").write_bytes(b"bad")
        exported = sorted((ROOT / "models" / "exported").glob("*.onnx"))[:8]
        make_zoo([models, *exported], cls.folder / "zoo")
        cls.lines = [json.loads(line) for line in (cls.folder / "zoo" / "results.jsonl").read_text().splitlines()]
        cls.browser = cls.enterClassContext(driver.chromium())

    def page(self, path="index.html", **options):
        page = driver.opened(self.browser, self.folder / "zoo" / path, **options)
        self.addCleanup(driver.closed, page)
        self.addCleanup(lambda: self.assertEqual([], page.problems))
        return page

    def names(self, page):
        return page.eval_on_selector_all("#models tbody tr:not([hidden]) td:first-child",
                                         "cells => cells.map(cell => cell.textContent)")

    def values(self, page, head):
        column = page.eval_on_selector_all(
            "#models thead tr:last-child th", "heads => heads.map(head => head.textContent)").index(head)
        return page.eval_on_selector_all("#models tbody tr",
                                         f"rows => rows.map(row => row.cells[{column}].dataset.value)")

    def test_the_first_screen_answers(self):
        page = self.page()
        summaries = [target["summary"] for line in self.lines for target in line["targets"]
                     if target["target"] == "h13"]
        whole = sum(summary["cpu_nodes"] == 0 for summary in summaries)
        self.assertEqual(f"M1 (h13) runs {whole} of {len(summaries)} models whole",
                         page.locator("h1:visible").inner_text())
        self.assertRegex(page.locator(".lead:visible").inner_text(), r"keeps nodes of the most models \(\d+\)")
        self.assertIn("bad.onnx", page.locator("#failures").inner_text())
        page.click("#targets button:text('M4')")
        self.assertTrue(page.locator("h1:visible").inner_text().startswith("M4 (h16) runs"))

    def test_it_sorts_by_every_head(self):
        page = self.page()
        for head in ("nodes", "MACs", "estimate"):
            for wanted in ("descending", "ascending"):
                page.locator("#models th.sorts:visible", has_text=head).first.click()
                values = [float(value) for value in self.values(page, head) if value]
                self.assertEqual(sorted(values, reverse=wanted == "descending"), values, head)
        page.locator("#models th.sorts", has_text="model").focus()
        page.keyboard.press("Enter")
        names = self.names(page)
        self.assertLess(names.index(next(n for n in names if n.endswith("bad.onnx"))),
                        names.index(next(n for n in names if n.endswith("whole.onnx"))))

    def test_it_filters_by_names_statuses_and_reasons(self):
        page = self.page()
        for words, wanted in [("refused", ["bad.onnx"]), ("WHOLE .onnx", ["whole.onnx"]), ("nowhere", [])]:
            page.fill("#search", words)
            self.assertEqual(wanted, [pathlib.Path(name).name for name in self.names(page)])
            self.assertEqual(str(len(wanted)), page.inner_text("#shown"))
        rule = page.locator("section:visible td a.rule").first.inner_text()
        models = page.locator("section:visible tbody tr:first-child .figure").first.inner_text()
        page.fill("#search", rule)
        self.assertGreaterEqual(len(self.names(page)), int(models))

    def test_pages_of_models_and_reasons(self):
        page = self.page()
        rule = page.locator("section:visible td a.rule").first.get_attribute("href")
        reason = self.page(rule)
        self.assertEqual(pathlib.Path(rule).stem, reason.inner_text("h1"))
        link = reason.locator("td a").first.get_attribute("href")
        shown = self.page((pathlib.Path(rule).parent / link).as_posix())
        self.assertEqual("ok", shown.inner_text(".lead"))
        self.assertIn(pathlib.Path(rule).stem, shown.inner_text("table >> nth=1"))

    def test_hostile_and_long_names_are_text(self):
        line = next(line for line in self.lines if "\u202e" in line["path"])
        for page in (self.page(), self.page(f"models/{line['id']}/index.html")):
            self.assertEqual(0, page.locator("bdi b").count())
            self.assertIn("\\u202egnp.onnx", page.locator("body").inner_text())

    def test_no_page_is_wider_than_its_window(self):
        paths = ["index.html", *(f"models/{line['id']}/index.html" for line in self.lines[:4] + self.lines[-4:]),
                 *(f"reasons/{path.name}" for path in (self.folder / "zoo" / "reasons").iterdir())]
        for path in paths:
            page = self.page(path, width=400)
            self.assertEqual(0, driver.overflow(page), path)
            hidden = page.eval_on_selector_all(".wide", "all => all.map(one => one.scrollWidth - one.clientWidth)")
            self.assertEqual(0, max(hidden, default=0), path)  # tables fit without scrolling

    def test_many_targets_leave_room_for_the_answer(self):
        make_zoo([self.folder / "models" / "whole.onnx"], self.folder / "many", "--target", "all")
        page = driver.opened(self.browser, self.folder / "many" / "index.html", width=400)
        self.addCleanup(driver.closed, page)
        self.assertGreater(page.locator("#targets button").count(), 20)
        self.assertLess(page.locator("h1:visible").bounding_box()["y"], 150)
        self.assertEqual(0, driver.overflow(page))

    def test_a_folder_of_all_models_is_named_once(self):
        page = self.page()
        self.assertNotIn("shown, in", page.inner_text("p:has(#shown)"))  # /tmp and the repository: only the root
        self.assertTrue(all(name.startswith("/") for name in self.names(page)))


def take_pictures():
    with tempfile.TemporaryDirectory() as name, driver.chromium() as browser:
        out = pathlib.Path(name, "zoo")
        make_zoo(["models/exported"], out, "--compile")
        images = ROOT / "docs" / "images"
        for width, height in ((400, 800), (1600, 1000)):
            for dark in (False, True):
                page = driver.opened(browser, out / "index.html", width=width, height=height, dark=dark)
                driver.picture(page, images / f"zoo-{width}-{'dark' if dark else 'light'}.webp")


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        take_pictures()
    else:
        unittest.main()
