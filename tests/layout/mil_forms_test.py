"""docs/formats/conversion.md says of every unit kind without a MIL form why it has none."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def main():
    kinds, without = set(), set()
    for path in sorted((ROOT / "kernels").rglob("*.cc")):
        for row in re.findall(r"UnitKindOf<\w+>\(\s*\{(.*?)\}\);", path.read_text(), re.DOTALL):
            kind = re.search(r'\.type = "?(\w+)', row).group(1)  # or a variable: several kinds
            kinds.add(kind)
            if not re.search(r"\.mil = ", row):
                without.add(kind)
    page = (ROOT / "docs" / "formats" / "conversion.md").read_text()
    table = page[page.index("Units without a MIL form:"):page.index("Of the others")]
    told = set()
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| unit "):
            told.update(line.split("|")[1].strip().split(", "))
    problems = [f"{kind}: has no MIL form, and conversion.md does not say why"
                for kind in sorted(without - told)]
    problems += [f"{kind}: conversion.md says that it has no MIL form" for kind in
                 sorted(told - without)]
    print(*problems, f"{len(kinds)} kinds, {len(without)} without a MIL form", sep="\n")
    return 1 if problems or len(kinds) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
