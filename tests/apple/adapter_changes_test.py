"""Changes of the adapter with device="apple" on the stand-in, of a run and of each row: the bits of the software
device in exact mode, and no compile.

    adapter_changes_test.py DRIVER STANDIN SOURCE_FOLDER
"""

import importlib.util
import os
import pathlib
import sys
import tempfile

# Before the package opens the framework.
log = tempfile.NamedTemporaryFile()
os.environ.update(ANEMONE_ANE_DRIVER=sys.argv[1], ANEMONE_ANE_FRAMEWORK=sys.argv[2], ANEMONE_STANDIN_LOG=log.name)
source = pathlib.Path(sys.argv[3])
sys.argv[1:] = [str(source), ""]  # of the other test

import numpy  # noqa: E402

import onnxruntime_ep_ane as ane  # noqa: E402

spec = importlib.util.spec_from_file_location("adapters_test", source / "tests" / "python" / "adapters_test.py")
adapters = importlib.util.module_from_spec(spec)
spec.loader.exec_module(adapters)


def compiles():
    with open(log.name) as file:
        return len(file.read().split())


def main():
    x = {"x": numpy.random.default_rng(1).standard_normal((4, 16)).astype(numpy.float32)}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: adapters.write_peft(pathlib.Path(folder) / name, adapters.TWO, rank, alpha=8, seed=rank)[0]
                 for name, rank in (("a", 4), ("b", 2))}
        for rows in (False, True):
            model = adapters.two_layers(("batch",) if rows else (4,)).SerializeToString()
            keywords = {"adapters": files, "adapter_rows": rows, "cache": False}
            session = ane.Session(model, device="apple", **keywords)
            exact = ane.Session(model, device="software", numerics="exact", **keywords)
            session.run(x)
            made = compiles()
            assert made > 0, "nothing was compiled on the stand-in"
            choices = ["a", "b", "", "a"] + ([["a", "b", None, "a"], ["b", "b", "a", ""]] if rows else [])
            different = set()
            for adapter in choices * 3:
                y = session.run(x, adapter=adapter)["y"].tobytes()
                assert y == exact.run(x, adapter=adapter)["y"].tobytes(), f"other bits with {adapter!r}"
                different.add(y)
            assert len(different) == len(choices) - 1, "adapters change nothing"
            assert compiles() == made, f"{compiles() - made} compiles for other adapters"


if __name__ == "__main__":
    main()
