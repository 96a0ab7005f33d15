"""Why a case does not pass: the first row whose patterns match its name and its message."""

import re

import cases

# (pattern of the name, pattern of the message, reason). A row that no case of a whole run matches is an
# error.
ROWS = [
    ("softmax_large_number", "on the engine", "fp16: inputs near 10000, where adjacent numbers differ by 8"),
    ("dynamicquantizelinear_expanded", "on the engine",
     "fp16: quotients near the middle of two steps are rounded to the other step"),
    ("", "^beyond fp16$", "fp16: inputs or expected outputs are NaN or above 65504"),
    ("image_decoder", "ImageDecoder", "image codecs: ONNX Runtime does not have them"),
    ("strnorm", "Locale", "a locale that this machine does not have"),
    ("", r"preview\.training", "training: operators of ONNX's preview without a function body, which ONNX "
     "Runtime's inference library does not have"),
    ("training_dropout", "other results", "randomness: a seed gives another sequence in ONNX's reference"),
    ("dft|stft", "other results",
     "ONNX Runtime's kernel: errors of float32 sums exceed the tolerance of ONNX's runner, 1e-7"),
    ("maxunpool_export_with_output_shape|resize_downsample_scales|bias_[34]d_mask_causal$", "other results",
     "ONNX Runtime's kernel: its result differs from ONNX's"),
    ("", "ValidateOpsetForDomain", "a type or form of an opset that ONNX Runtime does not know yet"),
    ("", "layout", "ONNX Runtime's kernel: recurrent networks with layout 1"),
    ("convinteger_with_padding|reduce_max_empty_set_bool|mask4d_padded_kv$", "Non-zero status",
     "ONNX Runtime's kernel refuses it"),
    ("", "Could not find an implementation|Failed to find kernel",
     "ONNX Runtime has no kernel for this type"),
]


def of(name, record):
    said = next((place for place in cases.places(record) if place not in cases.PLACES), "")
    for in_name, in_said, why in ROWS:
        if re.search(in_name, name) and re.search(in_said, said):
            return why
    return None


def missing(results, whole):
    """A line for each case that did not pass without a known reason; after a whole run, also for each
    row that no case matched."""
    failed = {name: record for name, record in results.items() if not cases.passed(record)}
    lines = [f"{name}: no reason for: {record['at']}" for name, record in failed.items()
             if of(name, record) is None]
    if whole:
        met = {of(name, record) for name, record in failed.items()}
        lines += [f"no case for the reason: {why}" for _, _, why in ROWS if why not in met]
    return lines
