"""Shared by the plugin's tests: registers the library, makes sessions, and finds out which provider ran
which node."""

import json
import os
import pathlib
import tempfile

import onnxruntime as ort

NAME = "ANEExecutionProvider"
NEWER = tuple(int(n) for n in ort.__version__.split(".")[:2]) >= (1, 24)


def register(library, name="ane"):
    ort.register_execution_provider_library(name, str(pathlib.Path(library).resolve()))
    return [device for device in ort.get_ep_devices() if device.ep_name == NAME]


def options_of(devices, provider_options, optimized=True, whole=False, threads=1):
    """Session options with the provider. `whole`: a session with a node on the CPU provider fails."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if whole:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if NEWER:
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices(devices, {k: str(v) for k, v in provider_options.items()})
    return options


def session_of(model, options):
    """Without this, Python's class prints an error and continues on the CPU."""
    return ort.InferenceSession(model, options, enable_fallback=0)


def assigned(session):
    """The nodes of each part that our provider runs, reported by ONNX Runtime; None before 1.24."""
    if not NEWER:
        return None
    return [sorted(node.name or node.op_type for node in part.get_nodes())
            for part in session.get_provider_graph_assignment_info() if part.ep_name == NAME]


def runs_nodes(session):
    """False if all nodes were folded, as far as ONNX Runtime reports it."""
    return NEWER and any(part.get_nodes() for part in session.get_provider_graph_assignment_info())


def cpu_session(model, optimized=True, threads=1):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Reported:
    """A session with the provider, and the provider's report of it."""

    def __init__(self, model, devices, provider_options, **how):
        handle, path = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        try:
            self.session = session_of(
                model, options_of(devices, {**provider_options, "report_path": path}, **how))
            text = pathlib.Path(path).read_text()
        finally:
            os.unlink(path)
        self.plans = [m["targets"][0] for m in json.loads(text)["models"]] if text else []

    def main_plan(self):
        """Bodies are planned before the graph that contains them."""
        return self.plans[-1]

    def engine_nodes(self):
        return sum(plan["summary"]["engine_nodes"] for plan in self.plans)

    def engine_segments(self):
        return sum(plan["summary"]["engine_segments"] for plan in self.plans)
