"""The executor `ray` of `anemone zoo`. The command starts main(), which gives models to the workers of a
Ray cluster and the results back. They talk in lines of JSON, over stdin and stdout:

    the command                                          main()
    {"version", "address", "jobs", "folder", "words"}    {"ready": true}
    {"number", "path", "id", "files", "entry"}, ...      {"number", "results"}, ...

`files` are the model and its external data; they travel by content, in Ray's object store. A worker writes
them into a folder of its own and runs the package's `anemone zoo` on them with `words`. A model whose worker
ends is given to another one; if that ends too, the model has crashed. {"error": ...} ends everything. When
stdin ends, the command is gone or done: main() ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _anemone
from ._command import command_environment, command_path

_MOST_TRIES = 2  # workers that a model may end
_PR_SET_PDEATHSIG = 1


class Result(NamedTuple):
    """Of one model, from a worker."""

    line: dict[str, Any]  # of results.jsonl
    files: dict[str, bytes]  # that `convert` wrote, by their paths in the model's folder
    error: str = ""  # of the worker itself


def _end_with_worker() -> None:
    """In the child: it is killed when the worker's thread ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _versions_differ(wanted: str) -> str:
    """Why the package of this worker cannot be used; "" if it can."""
    said = subprocess.run([command_path(), "--version"], capture_output=True, text=True, check=False).stdout
    found = said.strip().removeprefix("anemone ")
    if found == wanted:
        return ""
    return (f"the worker on {os.uname().nodename} has Anemone {found or 'without its command'}, "
            f"and this is {wanted}; install the same package there")


def work_on(job: Mapping[str, Any], words: Sequence[str], version: str, refs: Sequence[Any]) -> Result:
    """On a worker: one model. `refs` are the contents of job["files"]."""
    import ray

    problem = _versions_differ(version)
    if problem:
        return Result({}, {}, problem)
    with tempfile.TemporaryDirectory(prefix="anemone-zoo-") as name:
        folder = pathlib.Path(name)
        for path, content in zip(job["files"], ray.get(list(refs))):
            (folder / "model" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "model" / path).write_bytes(content)
        own = folder / "model" / job["files"][0]
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps({"models": [{**job["entry"], "path": f"model/{job['files'][0]}"}]}))
        done = subprocess.run([command_path(), "zoo", str(manifest), "--output", str(folder / "out"), "--json",
                               "--quiet", *words], capture_output=True, env=command_environment(),
                              preexec_fn=_end_with_worker, check=False)
        try:
            document = json.loads(done.stdout)
        except ValueError:
            document = {"error": f"anemone zoo ended with the code {done.returncode}"}
        if "error" in document:
            return Result({}, {}, f"{os.uname().nodename}: {document['error']}")
        [line] = document["models"]
        if line["error"]:  # names the user's files, not these copies
            line["error"] = line["error"].replace(str(own.parent) + "/", job["folder"])
        made = folder / "out" / "models" / line["id"]
        files = {str(path.relative_to(made)): path.read_bytes() for path in made.rglob("*")
                 if path.is_file() and path != made / "index.html"}
        return Result(line, files)


class _Fatal(Exception):
    """Ends the program; its text is for the user."""


class _Driver:
    """Keeps the cluster busy with the jobs that the command sends."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._start = start
        self._ray = self._connected(start["address"], start["jobs"])
        self._remote = self._ray.remote(num_cpus=1, max_retries=0)(work_on)
        self._most = start["jobs"] or max(1, 2 * int(self._ray.cluster_resources().get("CPU", 1)))
        self._contents: dict[str, Any] = {}  # in the object store, by their SHA-256
        self._running: dict[Any, tuple[dict[str, Any], list[str]]] = {}
        self._tries: dict[int, int] = {}

    @staticmethod
    def _connected(address: str, jobs: int) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise _Fatal("Ray is not installed for this Python; "
                         "pip install 'onnxruntime-ep-ane[ray]'") from None
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if host and port.isdigit():  # Ray itself tries for minutes
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
            except OSError as error:
                raise _Fatal(f"no cluster at '{address}': {error.strerror or error}") from error
        local: dict[str, Any] = {} if address else {"num_cpus": jobs or None, "include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **local)
        except Exception as error:
            text = " ".join(str(error).split())
            raise _Fatal(f"no cluster at '{address or 'this machine'}': {text}") from error
        return ray

    def has_room(self) -> bool:
        return len(self._running) < self._most

    def is_idle(self) -> bool:
        return not self._running

    def add(self, job: dict[str, Any]) -> None:
        """Gives a job to the cluster."""
        folder, paths = os.path.dirname(job["path"]), job["files"]
        inside = [path for path in paths if not os.path.relpath(path, folder or ".").startswith("..")]
        hashes = [self._sent(path) for path in inside]
        sent = {"entry": job["entry"], "folder": folder and folder.rstrip("/") + "/",
                "files": [os.path.relpath(path, folder or ".") for path in inside]}
        task = self._remote.remote(sent, self._start["words"], self._start["version"],
                                   [self._contents[key] for key in hashes])
        self._running[task] = (job, hashes)

    def _sent(self, path: str) -> str:
        """The SHA-256 of a file whose content is in the object store."""
        import numpy as np

        content = pathlib.Path(path).read_bytes()
        key = hashlib.sha256(content).hexdigest()
        if key not in self._contents:  # workers read an array without a copy
            self._contents[key] = self._ray.put(np.frombuffer(content, np.uint8))
        return key

    def finished(self, seconds: float) -> list[dict[str, Any]]:
        """Messages to the command of the jobs that ended within so many seconds."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        messages = []
        for task in done:
            job, hashes = self._running.pop(task)
            results = self._results_of(task, job, hashes)
            for key in {*hashes} - {key for _, used in self._running.values() for key in used}:
                self._contents.pop(key, None)
            if results is None:
                self.add(job)
            else:
                messages.append({"number": job["number"], "results": results})
        return messages

    def _results_of(self, task: Any, job: dict[str, Any], hashes: list[str]) -> dict[str, Any] | None:
        """None if the job must be tried again."""
        errors = self._ray.exceptions
        try:
            result = self._ray.get(task)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError,
                errors.ObjectLostError) as error:
            number = job["number"]
            self._tries[number] = self._tries.get(number, 0) + 1
            if self._tries[number] < _MOST_TRIES:
                return None
            is_memory = isinstance(error, errors.OutOfMemoryError)
            return {"status": "out-of-memory" if is_memory else "crashed",
                    "error": f"its worker ended, {_MOST_TRIES} times"}
        except errors.RayError as error:
            text = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
            raise _Fatal(f"a worker failed: {text}; every node needs this package") from error
        if result.error:
            raise _Fatal(result.error)
        for name, content in result.files.items():
            path = pathlib.Path(self._start["folder"], "models", job["id"], name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return dict(result.line)


def _read(lines: queue.Queue[dict[str, Any] | None]) -> None:
    for line in sys.stdin.buffer:
        lines.put(json.loads(line))
    lines.put(None)


def _serve(say: Any) -> None:
    lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    start = lines.get()
    if start is None:
        return
    if start["version"] != _anemone.__version__:
        raise _Fatal(f"the Python package is version {_anemone.__version__}, and the command "
                     f"{start['version']}; install the same")
    driver = _Driver(start)
    say({"ready": True})
    while True:
        while driver.has_room():
            try:
                job = lines.get(block=driver.is_idle())
            except queue.Empty:
                break
            if job is None:
                return
            driver.add(job)
        if None in lines.queue:
            return
        for message in driver.finished(0.2):
            say(message)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends first, and with it stdin
    # Only messages go to the command: what else is printed goes to stderr.
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)

        def say(message: dict[str, Any]) -> None:
            out.write(json.dumps(message) + "\n")
            out.flush()

        try:
            _serve(say)
        except _Fatal as error:
            say({"error": str(error)})
        except BrokenPipeError:
            pass
        finally:
            if "ray" in sys.modules:
                sys.modules["ray"].shutdown()
        os._exit(0)  # without waiting for stdin
