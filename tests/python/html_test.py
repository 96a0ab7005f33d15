"""A check() report as HTML: its numbers, unknown ones, joined targets, hostile names."""

import html.parser
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
from onnx import helper  # noqa: E402

HOSTILE = ("</script><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a&lt;b&amp;",
           "\u202e\u200fgnp.exe\u2066", "<style>", "\x1b[31m\n")


class Reader(html.parser.HTMLParser):
    """The tags of a page, and the text of its elements."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts, self.attributes = [], [], [], []
        self.goes_on = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "wbr":  # a place where a name may be broken; it has no end
            self.goes_on = True
            return
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.goes_on:
            self.texts[-1] += data
        else:
            self.texts.append(data)
        self.goes_on = False


def read(report):
    page = Reader(report._repr_html_())
    assert page.open == [], page.open
    return page


class Html(unittest.TestCase):
    def test_numbers_are_those_of_the_summary_and_of_the_text(self):
        report = ane.check(models.network(), target="m1")
        page = read(report)
        summary = report.models[0].targets[0].summary
        self.assertIn(f"{summary.nodes} nodes: {summary.engine_nodes} engine, "
                      f"{summary.cpu_nodes} CPU, {summary.folded_nodes} folded", page.texts)
        self.assertIn("100 % of 55.3 k", page.texts)
        self.assertIn(report.text().splitlines()[0], page.texts)
        self.assertIn("M1 (h13)", page.texts)

    def test_targets_with_one_answer_are_joined(self):
        report = ane.check(models.network(), target="m1,m4")
        page = read(report)
        self.assertIn("M1 (h13), M4 (h16)", page.texts)
        self.assertEqual(1, page.tags.count("details"))
        refused = ane.check(models.model([helper.make_node("Softmax", ["x"], ["y"])],
                                         [("x", 1, (1, 8, 4, 4))], [("y", 1, (1, 8, 4, 4))]), "h11,h13")
        self.assertEqual(2, read(refused).tags.count("details"))

    def test_rows_are_joined_as_in_the_text(self):
        for made, words in ((models.network(), {"target": "all"}),
                            (models.relu(("n", 4)), {"target": "m1,m4", "buckets": {"n": [2, 8]}})):
            report = ane.check(made, **words)
            table = report._repr_html_().split("<table>")[1].split("</table>")[0]
            rows = [line for line in report.text().splitlines() if re.match(r"  +(\S+ %|[-?])  ", line)]
            self.assertEqual(len(rows), table.count("<tr>") - 1, report.text())
        self.assertIn("M1 (h13), M4 (h16) at n=2, n=8", read(report).texts)
        code_names = read(ane.check(models.relu(), target="m9,t0")).texts
        self.assertIn("unreleased code name, limits not published: M9, T0", code_names)

    def test_names_are_broken_after_separators_only(self):
        made = models.network()
        name = "/model/layers.0/self_attn/q_proj/MatMul"
        made.graph.node[0].name = name
        page = ane.check(made)._repr_html_()
        self.assertIn("<bdi>/<wbr>model/<wbr>layers.<wbr>0/<wbr>self_<wbr>attn/<wbr>q_<wbr>proj/<wbr>MatMul"
                      "</bdi>", page)
        self.assertNotIn("anywhere", page)
        self.assertIn(name, Reader(page).texts)

    def test_warnings_name_their_node(self):
        made = models.model([helper.make_node("Conv", ["x", "w"], ["y"], "stem")], [("x", 1, (1, 5, 13, 13))],
                            [("y", 1, (1, 5, 11, 11))], [("w", np.ones((5, 5, 3, 3), np.float32))])
        report = ane.check(made)
        named = {w.rule for w in report.models[0].targets[0].warnings if w.name == "stem"}
        self.assertTrue(named)
        texts = read(report).texts
        self.assertNotIn("/#0", texts)
        self.assertEqual(1 + len(named), texts.count("stem"))

    def test_nodes_are_those_of_the_file(self):
        made = models.model([helper.make_node("Flatten", ["x"], ["f"], name="flatten"),
                             helper.make_node("Gemm", ["f", "w"], ["y"], name="head")],
                            [("x", 1, (1, 8, 1, 1))], [("y", 1, (1, 4))],
                            [("w", np.ones((8, 4), np.float32))])
        texts = read(ane.check(made)).texts
        self.assertIn("2 nodes: 2 engine, 0 CPU, 0 folded", texts)
        self.assertIn(" and 1 more node", texts)

    def test_unknown_macs_have_no_bar(self):
        report = ane.check(models.network(), target="m1")
        model, target = report.models[0], report.models[0].targets[0]
        self.assertIn('class="bar"', report._repr_html_())
        target.summary.update(macs=None, engine_macs=None, nodes_of_unknown_macs=11)
        target.nodes[0]["macs"] = None
        model["free_dimensions"] = [{"name": "b<", "inputs": [{"input": "x", "axis": 0}]},
                                    {"name": None, "inputs": [{"input": "x", "axis": 2}]}]
        page = read(report)
        self.assertNotIn('class="bar"', report._repr_html_())
        self.assertIn("? (11 nodes of unknown MACs)", page.texts)
        self.assertIn("?", page.texts)
        self.assertIn("b<", page.texts)
        self.assertIn("dimension 2 of 'x'", page.texts)

    def test_a_model_without_macs_has_no_bar(self):
        page = ane.check(models.relu())._repr_html_()
        self.assertIn("no MACs", page)
        self.assertNotIn('class="bar"', page)

    def test_hostile_names_are_text(self):
        for name in HOSTILE:
            made = models.network()
            plain = read(ane.check(made))
            made.graph.node[0].name = name
            made.graph.node[1].op_type = name
            made.graph.node[1].domain = "x"
            made.opset_import.append(helper.make_opsetid("x", 1))
            report = ane.check(made)
            page = read(report)
            with self.subTest(name):
                self.assertLessEqual(set(page.tags), set(plain.tags) | {"div", "table", "bdi"})
                self.assertLessEqual(set(page.attributes), {"class", "style"})
                if name.isprintable():
                    self.assertIn(name, page.texts)
                else:
                    self.assertFalse(set("\u202e\u200f\u2066\x1b") & set("".join(page.texts)))


if __name__ == "__main__":
    unittest.main()
