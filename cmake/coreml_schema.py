"""Writes the Protobuf schema of Core ML's packages, as a FileDescriptorSet for protoc.

    python3 cmake/coreml_schema.py OUT       # coreml.desc, for protoc --descriptor_set_in
    python3 cmake/coreml_schema.py --check   # whether coremltools is there, in the version tested

The schema is in the modules that protoc wrote for PyPI's package coremltools, as serialized
descriptors; they are read as text, and nothing of coremltools is run. Kept are the messages of a
model that is a program. Fields and messages of other kinds of model are left out: field numbers stay,
so the files are the same, and far less C++ is generated.
"""

import ast
import hashlib
import importlib.util
import pathlib
import sys

FILES = ("FeatureTypes", "MIL", "Model")
# Of the three descriptors in coremltools 9.0, in this order.
SHA256 = "b771bf3e94252d48d2d39ac4ae54cd29f4ef7bf8efbdfb512c0422b58c6cc469"


def descriptors():
    """The serialized descriptor of each file."""
    found = importlib.util.find_spec("coremltools")
    if found is None:
        sys.exit("coremltools was not found (pip install coremltools==9.0)")
    folder = pathlib.Path(found.submodule_search_locations[0]) / "proto"
    made = []
    for name in FILES:
        tree = ast.parse((folder / f"{name}_pb2.py").read_text())
        made.append(max((node.value for node in ast.walk(tree)
                         if isinstance(node, ast.Constant) and isinstance(node.value, bytes)), key=len))
    if hashlib.sha256(b"".join(made)).hexdigest() != SHA256:
        sys.exit(f"the schema in {folder} is not that of coremltools 9.0, which Anemone was written for")
    return made


def prune(file, kept):
    """Leaves out what refers to files that are not kept."""
    imports = [name for name in file.dependency if name in kept]
    file.ClearField("dependency")
    file.ClearField("public_dependency")
    file.dependency.extend(imports)
    known = {f".{other.package}.{kind.name}" for other in kept.values()
             for kind in (*other.message_type, *other.enum_type)}

    def is_known(field):
        return not field.type_name or any(
            field.type_name == name or field.type_name.startswith(name + ".") for name in known)

    for message in file.message_type:
        fields = [field for field in message.field if is_known(field)]
        message.ClearField("field")
        message.field.extend(fields)


def main():
    serialized = descriptors()
    if sys.argv[1] == "--check":
        return
    from google.protobuf import descriptor_pb2
    made = descriptor_pb2.FileDescriptorSet()
    for content in serialized:
        made.file.add().MergeFromString(content)
    kept = {file.name: file for file in made.file}
    for file in made.file:
        prune(file, kept)
    pathlib.Path(sys.argv[1]).write_bytes(made.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
