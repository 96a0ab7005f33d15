"""Finds citations of sources and checks that they lead somewhere.

A citation is the name of a file in a comment, a page, a table or a message, with the rows of the
file that follow it: `validators.json Softmax`, `numerics.json ew-sub, ew-mul`, `netplist.md,
"Composed forms"`, `numerics_notes.md section 2`. A row looks like a name: it has a capital letter,
a digit, an underscore or a hyphen, or it is a single word before punctuation. In a "source" of JSON
all words up to the next semicolon or parenthesis are rows.
"""

import ast
import fnmatch
import io
import json
import posixpath
import re
import tokenize
from typing import NamedTuple

SKIPPED_FOLDERS = {"build", "__pycache__"}
FILE = re.compile(r"(?<![\w./*<>{}:$-])(?:[\w.-]+/)*[\w-]+"
                  r"\.(?:md|json|csv|txt|cc|h|py|sh|cmake)\b(?![\w/*-])")
NAME = re.compile(r"(?=[\w.*/-]*[A-Z0-9_*-])[\w*][\w.*/-]*[\w*]|[A-Z0-9]")
LAST_WORD = re.compile(r'[a-z]+(?=[),;|"]|\.(?:\s|$)|$| \(")')
QUOTE = re.compile(r'"([^"]+)"')
VERBS = {"has", "holds", "lists", "names", "says"}
SOURCE_KEYS = {"source", "message_source", "family_source", "limit_source"}


class Block(NamedTuple):
    """A comment, a paragraph, a cell of a table or a string of JSON."""
    line: int  # 0 if not known
    text: str
    key: str = ""  # in JSON, the key of the string


class Citation(NamedTuple):
    line: int
    file: str
    rows: tuple = ()
    quotes: tuple = ()


def _joined(lines):
    """Consecutive (line, text) as blocks."""
    blocks, last = [], None
    for number, text in lines:
        if last is not None and number == last + 1:
            blocks[-1][1].append(text)
        else:
            blocks.append((number, [text]))
        last = number
    return [Block(number, " ".join(texts)) for number, texts in blocks]


def _comments(text, mark):
    whole, trailing = [], []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.search(rf"(?:^|[\s;,{{}}(]){re.escape(mark)}(?!!)\s?(.*)", line)
        if match and not line[:match.start(1)].strip(" \t" + mark):
            whole.append((number, match.group(1)))
        elif match:
            trailing.append(Block(number, match.group(1)))
    return _joined(whole) + trailing


def _literals(text):
    """Strings of C++ code that name a document. Adjacent strings are one."""
    code = re.sub(r"(?m)(^|\s)//.*|^#include.*", "", text)
    joined = re.sub(r'"\s*\n\s*"', "", code)
    return [Block(0, literal) for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
            if re.search(r"\.md\b|[a-z]\.json [A-Za-z0-9]", literal)]


def _python(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    blocks = _joined([(t.start[0], t.string.lstrip("# ")) for t in tokens
                      if t.type == tokenize.COMMENT])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            told = ast.get_docstring(node) or ""
            blocks += [Block(node.body[0].lineno, " ".join(part.split()))
                       for part in told.split("\n\n") if part]
    return blocks


def _page(text):
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    ") or not line.strip():
            continue
        elif line.startswith("|"):
            yield from (Block(number, cell.strip()) for cell in line.split("|"))
        else:
            lines.append((number, line.strip()))
    yield from _joined(lines)


def strings_of(value, key=""):
    """The strings in a document of JSON, as blocks."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from strings_of(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item, key)
    elif isinstance(value, str):
        yield Block(0, value, key)


def blocks_of(path):
    """The blocks of a file in which something may be cited. Files of unknown kinds have none."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        return list(strings_of(json.loads(text)))
    if path.suffix == ".md":
        return list(_page(text))
    if path.suffix in (".cc", ".h"):
        return _comments(text, "//") + _literals(text)
    first = text.partition("\n")[0]
    if path.suffix == ".py" or re.match("#!.*python", first):
        return _python(text)
    if path.suffix in (".sh", ".cmake", ".toml") or path.name == "CMakeLists.txt" \
            or re.match("#!.*sh", first):
        return _comments(text, "#")
    return []


def _rows(rest):
    """The rows and quotations that follow the name of a file."""
    section = re.match(r",? section (\d+|[A-Z][\w ]+)", rest)
    if section:
        return [f"section {section.group(1)}"], []
    rows, quotes = [], []
    rest = rest.removeprefix("'s")
    while gap := re.match(r'(?:,? and |, | \(| |: (?="))(?=\S)', rest):
        if "and" in gap.group() and not rows + quotes:
            break
        rest = rest[gap.end():]
        row = NAME.match(rest) or LAST_WORD.match(rest)
        if quote := QUOTE.match(rest):
            quotes.append(quote.group(1))
            rest = rest[quote.end():].removeprefix(")")
        elif row and "(" not in gap.group() and row.group() not in VERBS:
            rows.append(row.group())
            rest = rest[row.end():]
        else:
            break
    return rows, quotes


def _source_rows(rest):
    clause = re.match(r"[^;()]*", rest).group().replace(" to ", " ")
    return [part.strip() for part in clause.split(",") if part.strip()], []


def citations_in(block):
    """The citations of a block, in order."""
    for match in FILE.finditer(block.text):
        stem = match.group().rpartition("/")[2].partition(".")[0]
        if stem.isupper() and not match.group().endswith(".md"):
            continue  # FILE.json means any file
        follow = _source_rows if block.key in SOURCE_KEYS else _rows
        rows, quotes = follow(block.text[match.end():])
        yield Citation(block.line, match.group(), tuple(rows), tuple(quotes))


def files_below(root):
    """Paths of all files of the repository, relative to its root."""
    found, folders = [], [root]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            hidden = path.name.startswith(".") or path.name in SKIPPED_FOLDERS
            if not path.is_dir():
                found.append(path.relative_to(root).as_posix())
            elif not hidden and not path.is_symlink():
                folders.append(path)
    return found


class Rows:
    """The rows of a file: keys and names of JSON, headings and marked words of a page."""

    def __init__(self, path):
        text = path.read_text(encoding="utf-8")
        self.names, self.headings = set(), []
        if path.suffix == ".json":
            data = json.loads(text)
            self._walk(data)
            text = "\n".join(block.text for block in strings_of(data))
        elif path.suffix == ".md":
            self.headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
            marked = re.findall(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*", text)
            self.names = {(code or bold).rstrip(".") for code, bold in marked}
            text += "\n" + re.sub(r"[`*]", "", text)
        self._text = " ".join(text.split())

    def _walk(self, value, key=""):
        if isinstance(value, dict):
            for name, item in value.items():
                self.names.add(name)
                self._walk(item, name)
        elif isinstance(value, list):
            for item in value:
                self._walk(item, key)
        elif isinstance(value, str) or key == "id" or not key[:1].islower():
            self.names.add(str(value))  # a number only if it is an id or a code

    def has_row(self, row):
        if row.startswith("section "):
            wanted = row.removeprefix("section ")
            return any(heading.startswith((wanted + ".", wanted)) for heading in self.headings)
        if row in self.names or row in self.headings:
            return True
        if "*" in row:
            return bool(fnmatch.filter(self.names, row))
        if " " in row:
            return any(row.lower() in heading.lower() for heading in self.headings) \
                or all(self.has_row(word) for word in row.split())
        if "." in row or "/" in row:  # a key in a key; max_transpose_w/h
            return all(part in self.names for part in row.split("/")[0].split("."))
        return False

    def says(self, quote):
        return " ".join(quote.split()) in self._text


class Repository:
    """Finds files by the names that citations use."""

    def __init__(self, root, sources, elsewhere=()):
        self.root = root
        self.sources = sources      # name -> path, by docs/sources/README.md
        self.elsewhere = elsewhere  # names of files outside the repository
        self.files = files_below(root)
        self._known = set(self.files)
        self._by_name, self._rows = {}, {}
        for file in self.files:
            self._by_name.setdefault(file.rpartition("/")[2], file)

    def find(self, name, citing):
        """The path that `name` means in the file `citing`, or None."""
        if name in self.sources:
            return self.sources[name] if self.sources[name] in self._known else None
        folder = posixpath.dirname(citing)
        while True:
            path = posixpath.normpath(posixpath.join(folder, name))
            if path in self._known:
                return path
            if not folder:
                break
            folder = posixpath.dirname(folder)
        if name.startswith("anemone/"):  # a public header
            path = "include/" + name
            return path if path in self._known else None
        return self._by_name.get(name)

    def rows(self, path):
        if path not in self._rows:
            self._rows[path] = Rows(self.root / path)
        return self._rows[path]

    def problem(self, citation, citing):
        """Why a citation leads nowhere, or None."""
        if citation.file in self.elsewhere:
            return None
        where = f"{citing}:{citation.line}" if citation.line else citing
        path = self.find(citation.file, citing)
        if path is None:
            return f"{where}: cites {citation.file}, which the repository does not have"
        if not path.endswith((".md", ".json")):
            return None
        rows = self.rows(path)
        prose = path.endswith(".md")  # has no rows that are plain words
        for row in citation.rows:
            if not rows.has_row(row) and not (prose and row.isalpha() and row.islower()):
                return f"{where}: cites {citation.file} {row}, which {path} does not have"
        for quote in citation.quotes:
            if not rows.says(quote):
                return f'{where}: quotes "{quote}", which {path} does not say'
        return None
