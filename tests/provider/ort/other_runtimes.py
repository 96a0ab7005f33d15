"""Runs ONNX's test cases and the tests of sessions with other versions of ONNX Runtime: the oldest that
supports plugins, and one in the middle. Each is installed once, in a folder of Anemone's cache.

    other_runtimes.py PLUGIN
"""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = ("1.23.2", "1.27.0")
SCRIPTS = ("plugin_session_test.py", "plugin_compiled_test.py", "plugin_node_cases.py")


def cache_folder():
    base = os.environ.get("ANEMONE_CACHE_DIR")
    if not base:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                            "anemone")
    return pathlib.Path(base)


def python_with(version):
    folder = cache_folder() / f"ort-py-{version}"
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        packages = [f"onnxruntime=={version}",
                    *(f"{name}=={importlib.metadata.version(name)}" for name in ("onnx", "numpy"))]
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        done.touch()
    return python


def main():
    failed = 0
    for version in VERSIONS:
        python = python_with(version)
        for script in SCRIPTS:
            print(f"== ONNX Runtime {version}: {script}", flush=True)
            failed += subprocess.run([str(python), str(HERE / script), *sys.argv[1:]]).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
