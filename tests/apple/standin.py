"""The stand-in of AppleNeuralEngine.framework (standin/standin.h) for tests in Python."""

import os
import pathlib
import subprocess


class Standin:
    def __init__(self, driver, framework):
        self.driver, self.framework = driver, framework

    def environment(self, fault="", **variables):
        """That of this process, with the stand-in in the framework's place."""
        return {**os.environ, "ANEMONE_PROGRAM_CACHE": "", "ANEMONE_ANE_DRIVER": self.driver,
                "ANEMONE_ANE_FRAMEWORK": self.framework, "ANEMONE_STANDIN_FAULT": fault, **variables}


def run(command, *words, env=None, timeout=600):
    return subprocess.run([str(command), *map(str, words)], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, "ANEMONE_PROGRAM_CACHE": "", **(env or {})})


def arrays(folder):
    """The bytes of each output that `anemone run --output-dir` wrote, by file name."""
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}
