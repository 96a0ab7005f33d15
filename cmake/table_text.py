"""How generate_tables.py writes C++: names, strings, statuses, initializers and files."""

import json
import re

STATUSES = ["measured", "decompile-derived", "predicted", "unknown"]


def status_of(text):
    """The weakest status that a table's status text names ("measured (M1)" is measured)."""
    found = [s for s in STATUSES if s in (text or "")]
    if not found and text and text.startswith("derived-here"):
        return "predicted"  # our own arithmetic: not observed
    return found[-1] if found else "unknown"


def camel(name):
    if name.startswith("0x"):
        name = "byte_" + name
    return "k" + "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", name) if part)


def status_enum(text):
    return "Status::" + camel(status_of(text))


def quoted(text):
    return "nullptr" if text is None else json.dumps(text)


def initializer(fields):
    """Designated initializers, without the fields that keep their default."""
    return ", ".join(f".{field} = {value}" for field, value in fields.items() if value is not None)


def write(path, text):
    """Writes a file unless it has this text already: an unchanged file is not compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
