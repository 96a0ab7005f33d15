"""bench/roofline.py: classes, shares, and the table in a page."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench import pages, roofline  # noqa: E402


def profile(**seconds):
    """A profile in which each kind needs a tenth of its time; crossings have no roof."""
    return {"kinds": [{"kind": kind, "seconds": s, "least_time": 0 if kind == "crossing:" else s / 10}
                      for kind, s in seconds.items()]}


class RooflineTest(unittest.TestCase):
    def test_classes(self):
        for kind, name in (("Conv 3x3", "convolutions 3x3"), ("Conv 3x3/2", "other convolutions"),
                           ("Conv 1x1", "convolutions 1x1"), ("Deconv 2x2/2", "other convolutions"),
                           ("Conv 3x3 depthwise", "convolutions, depthwise and grouped"),
                           ("LayerNormalization", "normalizations and reductions"), ("Transpose", "moves"),
                           ("Recurrence", "recurrences"), ("crossing:", "conversions at ports"),
                           ("segment:", "ONNX Runtime"), ("NMS", "others")):
            self.assertEqual(name, roofline.class_of(kind))

    def test_every_model_counts_the_same(self):
        rows = roofline.summary([("long", profile(SDPA=90, Transpose=10)),
                                 ("short", profile(SDPA=0.1, **{"crossing:": 0.3}))])
        self.assertEqual(["attention", "conversions at ports", "moves"], [row[0] for row in rows])
        attention, conversions, moves = rows
        self.assertAlmostEqual((0.9 + 0.25) / 2, attention[1])
        self.assertEqual((0.9, "long"), attention[2:4])
        self.assertAlmostEqual(0.1, attention[4])
        self.assertIsNone(conversions[4])
        self.assertAlmostEqual(0.05, moves[1])
        self.assertIn("| attention | 57 % | 90 %, `long` | 10 % |", roofline.table(rows))

    def test_the_table_of_a_section_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# Page\n\n## Other\n\n| a |\n|---|\n\n## Mine\n\ntext\n\n| b |\n|---|\n| 1 |\n\nend\n")
            pages.replace_table(page, "Mine", ["| c |", "|---|"])
            self.assertEqual("# Page\n\n## Other\n\n| a |\n|---|\n\n## Mine\n\ntext\n\n| c |\n|---|\n\nend\n",
                             page.read_text())


if __name__ == "__main__":
    unittest.main()
