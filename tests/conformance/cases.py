"""Runs one case with ONNX Runtime's CPU provider, and in direct mode on each target."""

import re
import warnings

import numpy as np
import onnx_cases

TARGETS = ("h13", "h14", "h15", "h16", "h17")
# Where a case ran. Any other text in a record is the reason why it did not pass.
WHOLE, PART, CPU, FOLDED = "whole", "part", "cpu", "folded"
PLACES = (WHOLE, PART, CPU, FOLDED)
PATH = re.compile(r"/onnxruntime_src\S*:\d+ ")  # paths of ONNX Runtime's build, in its messages
EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


def operator_of(case, operators):
    """The operator that a case tests; `operators` has those of earlier cases."""
    kinds = {node.op_type for node in case.model.graph.node if node.op_type != "Constant"}
    if len(kinds) == 1:
        return kinds.pop()
    return operators.get(EXPANDED.sub("", case.name), "several")


def one_line(error):
    text = str(error).strip() or type(error).__name__
    return PATH.sub("", " ".join(text.split()))[:200]


def in_order(case, made):
    return [made[port.name] for port in case.model.graph.output]


def judge(case, run, on_engine):
    """None, or how the outputs differ. The tolerance is that of ONNX's runner, or of fp16 if units ran on
    the engine."""
    if onnx_cases.is_random(case.model.graph):
        return None if all(len(run(inputs)) == len(wanted) for inputs, wanted in case.data_sets) \
            else "another number of outputs"
    for inputs, wanted in case.data_sets:
        got = run(inputs)
        if onnx_cases.agrees(got, wanted, case.rtol, case.atol):
            continue
        if not on_engine:
            return "other results"
        if not onnx_cases.agrees_in_fp16(got, wanted):
            beyond = onnx_cases.beyond_fp16([*inputs, *wanted])
            return "beyond fp16" if beyond else "other results on the engine"
    return None


def by_onnxruntime(case):
    """Whether ONNX Runtime's CPU provider passes the case; False if Python cannot pass its inputs."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(case.model.SerializeToString(), options,
                                       providers=["CPUExecutionProvider"])
        return onnx_cases.can_be_fed(session) and judge(
            case, lambda inputs: session.run(None, case.feeds(inputs)), False) is None
    except Exception:  # ONNX Runtime's exceptions have many classes
        return False


def open_shapes(case):
    """The shapes that the first data set has for inputs without a shape, or with free dimensions or
    zeros. A session needs them bound."""
    ports = {port.name: port.type.tensor_type for port in case.model.graph.input
             if port.type.HasField("tensor_type")}
    feeds = case.feeds(case.data_sets[0][0])
    return {name: np.shape(feeds[name]) for name, tensor in ports.items()
            if name in feeds and feeds[name] is not None
            and not (tensor.HasField("shape")
                     and all(dim.dim_value > 0 for dim in tensor.shape.dim))}


def by_session(case, target):
    """Where it ran or why it did not pass, and the first reason why a node is not on the engine."""
    import onnxruntime_ep_ane as ane

    try:
        session = ane.Session(case.model, target, threads=1, shapes=open_shapes(case))
        plan = session.plan
        engine = plan.summary.engine_nodes
        why = next((node.rule or node.message or node.layer for node in plan.nodes
                    if node.placement == "cpu"), None)
        wrong = judge(case, lambda inputs: in_order(case, session.run(case.feeds(inputs))), engine > 0)
    except Exception as error:
        return one_line(error), None
    if wrong is not None:
        return wrong, why
    cpu = plan.summary.cpu_nodes
    return (WHOLE if engine and not cpu else PART if engine else CPU if cpu else FOLDED), why


def places(record):
    """A list by target, or one item if all are the same."""
    at = record["at"]
    return at if isinstance(at, list) else [at] * len(TARGETS)


def passed(record):
    return all(place in PLACES for place in places(record))


def run(case):
    """A case's record: whether ONNX Runtime passes it, where it ran on each target or why it did not
    pass, and why a node is not on the engine of the newest target."""
    warnings.simplefilter("ignore")
    at, why = [], None
    for target in TARGETS:
        place, why = by_session(case, target)
        at.append(place)
    return {"ort": by_onnxruntime(case), "at": at if len(set(at)) > 1 else at[0], "why": why}
