"""Includes point one way only: the table of design.md, checked on every source file.

Run: python3 tests/layout/includes_test.py [REPOSITORY]. Exit code 1 lists what breaks the table.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]

# Public headers with nothing but absl and base/ behind them: every folder may use them, and base/.
LEAVES = {"anemone/bit_mask.h", "anemone/compressed.h", "anemone/onnx_value.h",
          "anemone/scale_grid.h", "anemone/tensor.h"}

# Folder -> folders it may include, besides itself, base/ and LEAVES. The longest path wins.
MAY_INCLUDE = {
    "include/anemone": [],
    "base": [],
    "math": [],
    "engine": ["math"],
    "importer": [],
    "kernels": ["engine", "math", "importer"],
    "partitioner": ["kernels", "engine", "importer"],
    "fallback": ["importer", "engine"],
    "provider": ["partitioner", "kernels", "engine", "math", "fallback", "importer",
                 "include/anemone"],
    "provider/ort": ["provider", "partitioner", "kernels", "engine", "math", "importer",
                     "include/anemone"],
    "python": ["include/anemone", "engine"],
    "tools": ["provider", "partitioner", "kernels", "engine", "math", "fallback", "importer",
              "include/anemone"],
}
# Within a folder that may be included, only these headers (docs/design.md: "importer's Graph").
ONLY = {
    ("kernels", "importer"): {"importer/graph.h", "importer/elements.h",
                              "importer/operators/intervals.h"},
    ("partitioner", "importer"): {"importer/graph.h", "importer/infer/trips.h",
                                  "importer/opset/opsets.h"},
    ("fallback", "engine"): {"engine/surface.h"},
}
GENERATED = {"target_fields.h", "rule_table.h", "warning_table.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def folder_of(path):
    best = ""
    for folder in MAY_INCLUDE:
        if (path + "/").startswith(folder + "/") and len(folder) > len(best):
            best = folder
    return best


def problems(path, text):
    """What breaks the table in one file, as lines."""
    folder = folder_of(path)
    found = []
    for included in INCLUDE.findall(text):
        resolved = "include/" + included if included.startswith("anemone/") else included
        target = folder_of(resolved)
        if included in LEAVES or included in GENERATED or not target:
            continue  # a leaf, a table, or another project's header
        if target == "base" and folder != "include/anemone":
            continue  # installed headers stand by themselves
        own_public = included.startswith("anemone/") and folder == "provider"
        if target == folder or own_public:
            continue
        if target not in MAY_INCLUDE[folder]:
            found.append(f"{path}: includes {included}, but {folder}/ may not include {target}/")
        elif included not in ONLY.get((folder, target), {included}):
            found.append(f"{path}: includes {included}; of {target}/ it may include only "
                         + ", ".join(sorted(ONLY[(folder, target)])))
    return found


class IncludesTest(unittest.TestCase):
    def test_every_source_follows_the_table(self):
        found, files = [], 0
        for folder in {f.split("/")[0] for f in MAY_INCLUDE}:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cc"):
                    files += 1
                    found += problems(path.relative_to(ROOT).as_posix(), path.read_text())
        self.assertGreater(files, 20)
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_a_wrong_include_is_seen(self):
        for path, included in [("engine/x.cc", "kernels/lowering.h"),
                               ("math/core/x.cc", "engine/dims.h"),
                               ("base/x.cc", "math/core/half.h"),
                               ("include/anemone/x.h", "base/threads.h"),
                               ("importer/x.cc", "engine/dims.h"),
                               ("fallback/x.cc", "partitioner/plan.h"),
                               ("kernels/x.cc", "importer/read/reader.h"),
                               ("partitioner/x.cc", "anemone/session.h")]:
            self.assertTrue(problems(path, f'#include "{included}"\n'), (path, included))

    def test_right_includes_are_not(self):
        for path, included in [("engine/x.cc", "math/core/half.h"),
                               ("kernels/x.cc", "importer/graph.h"),
                               ("engine/x.cc", "rule_table.h"),
                               ("provider/session.cc", "anemone/session.h"),
                               ("importer/x.cc", "anemone/tensor.h")]:
            self.assertEqual([], problems(path, f'#include "{included}"\n'))


if __name__ == "__main__":
    unittest.main()
