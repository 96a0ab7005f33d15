"""Writes the examples of headers as C++ functions, so that the build compiles them. Standard
library only.

Usage: header_examples.py ROOT OUTPUT_DIR

Writes a C++ source file into OUTPUT_DIR for each folder of FOLDERS, named after its top folder, and
OUTPUT_DIR/examples.d, which lists the files read.

An example is a paragraph of the first comment of a header whose lines all begin with `//` and at
least three blanks:

  // math/core/half.h: Half, the engine's number format.
  //
  //   Half h = ToHalf(0.1f);

A paragraph follows an empty `//` line. A list that follows its sentence without an empty line is
not an example. Text in another language is not an example either; the line before it ends with
the name of the language: `as JSON text:`, `as MIL text:`, `as ONNX text:`.

The paragraphs of a header become one function that returns an absl::Status, in a namespace inside
the first namespace of the header. An example that defines a function, or that begins with a macro
of GoogleTest such as TEST, is put into the namespace itself. Examples of public headers are
outside of namespace anemone, as a user's code is.

tests/examples/given.txt declares the names that examples use and do not define. A section applies
to one header, to the headers of a folder and its subfolders, or to all headers:

  [*]
  const Target& target;
  [math/]
  absl::Span<const Half> x, y;
  [math/core/half.h]
  #include <cmath>

A declaration applies if the example mentions the name; the most specific section wins. Variables
need no `extern`. Types (`struct X { ... };`, `using X = ...;`) and functions are possible too, one
a line. An #include applies to all examples of the folder. A section of a header without an example,
or a name that no example uses, is an error.
"""

import pathlib
import re
import sys

FOLDERS = ("base", "engine", "fallback", "importer", "include/anemone", "kernels", "math",
           "partitioner", "provider", "tests", "tools")
TABLE = "tests/examples/given.txt"
OTHER_LANGUAGE = re.compile(r"\bas \w+ text:$")
FUNCTION = re.compile(r"^(?:[\w:<>*&]+ )+[*&]?\w+\([^;{}=]*\) \{$|^[A-Z_]+TEST[A-Z_]*\(",
                      re.MULTILINE)
NOT_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//.*')
NAME = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*")
TYPE = re.compile(r"(?:struct|using|enum class) (?:\w+::)*(\w+)")
DECLARED_FUNCTION = re.compile(r"[\w:<>,&* ]+?[ *&](\w+)\(.*\);$")
VARIABLES = re.compile(r"(.+?) ((?:\w+, )*\w+)((?:\[\d+\])?);$")


def fail(message):
    sys.exit(f"header_examples.py: {message}")


def example_of(text):
    """[(line number, code)] of the paragraphs that are examples."""
    paragraphs, last = [[]], ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            break
        if line == "//":
            paragraphs.append([])
        elif not paragraphs[-1] and OTHER_LANGUAGE.search(last):
            paragraphs[-1].append((number, ""))  # not an example
        else:
            paragraphs[-1].append((number, line[2:]))
        last = line if line != "//" else last
    return [(p[0][0], [code[3:] for _, code in p]) for p in paragraphs
            if p and all(code.startswith("   ") for _, code in p)]


def declarations_of(line):
    """{name: C++ text} of a line of the table, or {}."""
    if match := TYPE.match(line) or DECLARED_FUNCTION.match(line):
        return {match.group(1): line}
    if match := VARIABLES.match(line):
        return {name: f"extern {match.group(1)} {name}{match.group(3)};"
                for name in match.group(2).split(", ")}
    return {}


def read_given(path):
    """{section: ({name: C++ text}, [#include lines])}"""
    current = ({}, [])
    sections = {"*": current}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("//"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), ({}, []))
        elif line.startswith("#include "):
            current[1].append(line)
        else:
            # With #line, errors of the compiler point to the table.
            found = declarations_of(line) or fail(f"{path}:{number}: not a declaration: {line}")
            current[0].update({name: f'#line {number} "{TABLE}"\n{text}'
                               for name, text in found.items()})
    return sections


def sections_of(header, given):
    """The names of the sections that apply to a header, the most specific first."""
    found = [name for name in given
             if name in ("*", header) or name.endswith("/") and header.startswith(name)]
    return sorted(found, key=lambda name: (name != "*", len(name)), reverse=True)


def names_in(code):
    return set(NAME.findall(NOT_CODE.sub(" ", code)))


def is_type(declaration):
    return TYPE.match(declaration.partition("\n")[2]) is not None


def given_for(header, code, given, used):
    """The declarations that an example needs: types first."""
    visible = {}  # name -> (section, declaration)
    for section in sections_of(header, given):
        for name, declaration in given[section][0].items():
            visible.setdefault(name, (section, declaration))
    found = {name: visible[name] for name in sorted(names_in(code) & visible.keys())}
    named = names_in("\n".join(declaration for _, declaration in found.values()))
    types = {name: row for name, row in visible.items()
             if is_type(row[1]) and (name in found or name in named)}
    rows = {**types, **found}
    used.update((section, name) for name, (section, _) in rows.items())
    return [declaration for _, declaration in rows.values()]


def namespace_of(header, text):
    if header.startswith("include/"):
        return ""
    match = re.search(r"^namespace (anemone[\w:]*) \{", text, re.MULTILINE)
    return f"{match.group(1)}::" if match else "anemone::"


def code_of(header, text, paragraphs, given, used):
    code = "\n".join("\n".join(lines) for _, lines in paragraphs)
    title = "Example_" + re.sub(r"\W", "_", header)
    lines = [f"namespace {namespace_of(header, text)}{title} {{",
             *given_for(header, code, given, used)]
    in_namespace = FUNCTION.search(code)
    if not in_namespace:
        lines.append("[[maybe_unused]] absl::Status Example() {")
    for number, paragraph in paragraphs:
        lines += [f'#line {number} "{header}"', *paragraph]
    if not in_namespace:
        lines += ["return absl::OkStatus();", "}"]
    return lines + ["}", ""]


def write(path, text):
    """Writes a file unless it has this text already: an unchanged file is not compiled again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def examples_of(root, folder, given, used):
    """(text of the .cc file of a folder, headers with an example, files read)"""
    body, headers, read = [], [], sorted((root / folder).rglob("*.h"))
    for path in read:
        header = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        paragraphs = example_of(text)
        if paragraphs:
            headers.append(header)
            body += code_of(header, text, paragraphs, given, used)
    more = [line for section in given for line in given[section][1]
            if any(section in sections_of(header, given) for header in headers)]
    included = [f'#include "{header.removeprefix("include/")}"' for header in headers]
    return "\n".join([f"// Generated from the headers of {folder} by cmake/header_examples.py.",
                      '#include "absl/status/status.h"', *dict.fromkeys(more), *included, "",
                      *body]), headers, read


def main():
    root, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    given, used, seen, read = read_given(root / TABLE), set(), set(), []
    outputs = [out / f"{folder.partition('/')[0]}_examples.cc" for folder in FOLDERS]
    for folder, output in zip(FOLDERS, outputs):
        text, headers, files = examples_of(root, folder, given, used)
        write(output, text)
        seen.update(headers)
        read += files
    for section, (names, _) in given.items():
        if section.endswith(".h") and section not in seen:
            fail(f"{TABLE}: {section} has no example")
        for name in names:
            if (section, name) not in used:
                fail(f"{TABLE}: no example uses {name} of [{section}]")
    write(out / "examples.d", " \\\n  ".join([f"{outputs[0]}:", *map(str, read)]) + "\n")


if __name__ == "__main__":
    main()
