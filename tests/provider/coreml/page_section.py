"""Sections of docs/coreml_models.md, which several scripts write: each replaces its own."""

import pathlib


def put(page, title, text):
    """Replaces the section "## TITLE" of a page, or adds it at the end."""
    page = pathlib.Path(page)
    before, found, after = page.read_text().partition(f"\n## {title}\n")
    _, mark, rest = after.partition("\n## ")
    page.write_text(before.rstrip("\n") + f"\n\n## {title}\n\n" + text.strip("\n") + "\n" + mark + rest)


def later(page, titles):
    """The sections with these titles as they are, for a script that writes the rest of the page."""
    content = pathlib.Path(page).read_text() if pathlib.Path(page).exists() else ""
    parts = content.split("\n## ")[1:]
    return "".join(f"\n## {part}" for part in parts if part.partition("\n")[0] in titles)
