"""Writes engine/tables/mil_operations.json: the operations of MIL, from which Core ML opset each exists,
and which arguments each of its versions takes. The facts are read from the registry of coremltools.

    .venv/bin/python tools/coreml/operations.py engine/tables/mil_operations.json [--check]
"""

import json
import logging
import pathlib
import sys

logging.disable(logging.WARNING)  # the libraries that only a Mac has are missing

import coremltools  # noqa: E402
from coremltools.converters.mil._deployment_compatibility import AvailableTarget  # noqa: E402
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry  # noqa: E402

OLDEST = 6  # the specification of iOS 15, the first with programs


def opsets():
    """Each opset with its names: that of the function in a package, and those of the systems."""
    names = {}
    for target in AvailableTarget.__members__.items():
        names.setdefault(int(target[1].value), []).append(target[0].lower())
    functions = coremltools._OPSET
    return [{"names": sorted(n for n in names[number] if not n.startswith(("watchos", "tvos"))),
             "specification": number, "function": functions[number]}
            for number in sorted(names) if number >= OLDEST]


def versions(by_target, known):
    """The arguments by the opset that introduced them; one entry for each version."""
    found, last = {}, None
    for number in sorted(int(target.value) for target in by_target):
        version = next(c for t, c in by_target.items() if int(t.value) == number)
        if version is not last:
            last = version
            name = known[max(number, OLDEST)]
            found[name] = sorted(version.input_spec.input_types)
    return found


def table():
    known = {row["specification"]: next(n for n in row["names"] if n.startswith("ios"))
             for row in opsets()}
    operations = {op: versions(by_target, known)
                  for op, by_target in sorted(SSAOpRegistry.core_ops.items())
                  if not op.startswith("_")}
    # The registry has one operation for both; in a package they are apart.
    operations["write_state"] = {next(iter(operations["read_state"])): ["data", "input"]}
    return {"source": f"coremltools, the registry of operations in version {coremltools.__version__}; "
                      "written by tools/coreml/operations.py",
            "status": "measured", "opsets": opsets(), "operations": operations}


def written(content):
    """As JSON, with a line for each opset and operation."""
    lists = {key: content.pop(key) for key in ("opsets", "operations")}
    head = json.dumps(content, indent=1).removesuffix("\n}")
    rows = ",\n".join(f"  {json.dumps(row)}" for row in lists["opsets"])
    ops = ",\n".join(f'  "{op}": {json.dumps(of)}' for op, of in lists["operations"].items())
    return f'{head},\n "opsets": [\n{rows}\n ],\n "operations": {{\n{ops}\n }}\n}}\n'


def main():
    path = pathlib.Path(sys.argv[1])
    text = written(table())
    if "--check" not in sys.argv:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} differs from the registry of coremltools {coremltools.__version__}; "
                 "run tools/coreml/operations.py")


if __name__ == "__main__":
    main()
