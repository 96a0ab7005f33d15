"""docs/formats/conversion.md gives a reason for every unit kind without a MIL form."""

import json
import pathlib
import subprocess
import sys

ROOT, ANEMONE = pathlib.Path(sys.argv[1]), sys.argv[2]


def main():
    listed = subprocess.run([ANEMONE, "units", "--json"], check=True, capture_output=True).stdout
    units = json.loads(listed)["units"]
    without = {unit["type"] for unit in units if not unit["mil_form"]}
    page = (ROOT / "docs" / "formats" / "conversion.md").read_text()
    table = page[page.index("Units without a MIL form:"):page.index("Some forms of other units")]
    told = set()
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| unit "):
            told.update(line.split("|")[1].strip().split(", "))
    problems = [f"{kind}: has no MIL form, and conversion.md does not say why"
                for kind in sorted(without - told)]
    problems += [f"{kind}: conversion.md says that it has no MIL form" for kind in
                 sorted(told - without)]
    print(*problems, f"{len(units)} kinds, {len(without)} without a MIL form", sep="\n")
    return 1 if problems or not without else 0


if __name__ == "__main__":
    sys.exit(main())
