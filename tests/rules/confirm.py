"""Helpers of the rule tests: run `anemone confirm` for a file or a list of cases."""

import json
import pathlib
import re
import subprocess
import tempfile

TABLES = pathlib.Path(__file__).parent / "tables"
ENGINE_TABLES = pathlib.Path(__file__).parents[2] / "engine" / "tables"
PROBES = TABLES / "compile_probes.json"


def pattern_of(text):
    """A printf pattern as a regular expression."""
    return re.sub(r"%(?:zd|zu|d|u|s)", ".+", re.escape(text).replace(r"\%", "%"))


def confirm(anemone, path, *flags):
    """The results for the cases of a file, in their order."""
    done = subprocess.run([anemone, "confirm", "--probe", str(path), "--json", *flags],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["results"]


def confirm_all(anemone, cases, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(cases, file)
        file.flush()
        return confirm(anemone, file.name, *flags)
