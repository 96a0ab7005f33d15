"""Every source file includes only what the table of docs/design.md allows.

Run: python3 tests/layout/includes_test.py [REPOSITORY]. Exit code 1 if an include is not allowed;
all of them are listed.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else __file__).resolve()
if ROOT.is_file():
    ROOT = ROOT.parents[2]
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
EVERY_FOLDER = "every folder"  # the row whose headers all folders may use
GENERATED = {"target_fields.h", "rule_table.h", "warning_table.h"}


def section(name):
    return DESIGN.split(f"## {name}\n", 1)[1].split("\n## ", 1)[0]


def table(text):
    """Folder -> {folder that it may include -> the only allowed headers, or None for all}."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        if len(cells) != 2 or cells[0].startswith(("folder", "-")):
            continue
        items = re.findall(r"`([\w/]+)`(?: \(only ([^)]*)\))?", line.split(" | ")[1])
        rows[cells[0]] = {folder: set(re.findall(r"`([^`]+)`", only)) if only else None
                          for folder, only in items}
    return rows


ROWS = table(section("Includes"))
LEAVES = ROWS.pop(EVERY_FOLDER)["include/anemone"]
MAY_INCLUDE = {folder: list(row) for folder, row in ROWS.items()}  # the longest path wins
ONLY = {(folder, other): only for folder, row in ROWS.items() for other, only in row.items()
        if only}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def folder_of(path):
    best = ""
    for folder in MAY_INCLUDE:
        if (path + "/").startswith(folder + "/") and len(folder) > len(best):
            best = folder
    return best


def problems(path, text):
    """The includes of one file that the table does not allow, as lines."""
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


def folders_of(root):
    """Folders of the first two levels that have files, named as on the page."""
    for path in root.glob("*/**/*"):
        parts = path.relative_to(root).parts
        if path.is_file() and not parts[0].startswith(".") and parts[0] != "build":
            yield parts[0] + "/"
            if len(parts) > 2 and not parts[1].startswith((".", "_")):
                yield f"{parts[0]}/{parts[1]}/"


class FoldersTest(unittest.TestCase):
    ONE_LEVEL = ("docs/", "models/", "python/", "tests/")

    def test_every_folder_has_a_line(self):
        told = set(re.findall(r"^\| `([\w/]+/)` \|", section("Folders"), re.MULTILINE))
        there = {folder for folder in folders_of(ROOT)
                 if folder.count("/") == 1 or not folder.startswith(self.ONE_LEVEL)}
        self.assertEqual(there - {"include/"}, told)


class IncludesTest(unittest.TestCase):
    def test_the_table_is_read(self):
        self.assertEqual({"base", "include/anemone", "math", "engine", "importer", "kernels",
                          "partitioner", "fallback", "provider", "provider/ort", "python",
                          "tools"}, set(ROWS))
        self.assertEqual({"engine/surface.h"}, ONLY["fallback", "engine"])
        self.assertIn("anemone/tensor.h", LEAVES)

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
