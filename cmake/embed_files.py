"""Writes files as constants of C++.

    embed_files.py OUTPUT.cc HEADER.h NAME=FILE...

HEADER.h declares each NAME in the namespace anemone: `extern const absl::string_view kStyle;`.
"""

import pathlib
import sys


def literal(line):
    """One line of the file as a string literal; every byte but plain ASCII is an octal number."""
    plain = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}
    return '"' + "".join(plain.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
                         for byte in line) + '"'


def main(output, header, *pairs):
    lines = [f"// Written by cmake/embed_files.py; do not edit.\n#include \"{header}\"\n\nnamespace anemone {{\n"]
    for pair in pairs:
        name, _, path = pair.partition("=")
        content = pathlib.Path(path).read_bytes()
        literals = "\n    ".join(literal(line) for line in content.splitlines(keepends=True)) or '""'
        lines.append(f"constinit const absl::string_view {name}(\n    {literals},\n    {len(content)});")
    lines.append("\n}  // namespace anemone\n")
    pathlib.Path(output).write_text("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
