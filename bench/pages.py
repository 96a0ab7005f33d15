"""Writes what the benches measure into pages."""

import pathlib


def replace_table(page, section, table):
    """Replaces the first table of a section of the page by the lines `table`."""
    path = pathlib.Path(page)
    before, after = path.read_text(encoding="utf-8").split(f"\n## {section}\n")
    lines = after.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    lines[first:last] = table
    path.write_text(f"{before}\n## {section}\n" + "\n".join(lines), encoding="utf-8")
