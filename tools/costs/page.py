"""Writes docs/costs.md: how Anemone estimates times, next to every published time of a whole program.

    page.py ANEMONE PAGE

The published times are those of docs/sources/cost_model.json and engine/tables/orion.json. Each is of a
program that can be built as an ONNX model (programs.py); `anemone check --json` estimates it.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import onnx
import programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECODE_PROGRAMS = 24  # a token, seed 003 section 8.1
TEXT = pathlib.Path(__file__).with_name("page.txt")


def check(anemone, path, target, policy="max-engine"):
    done = subprocess.run([anemone, "check", str(path), "--target", target, "--policy", policy, "--json"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"anemone check failed: {done.stderr}")
    return json.loads(done.stdout)["models"][0]["targets"][0]


def check_program(anemone, program, folder):
    path = pathlib.Path(folder, "program.onnx")
    onnx.save(program.model, path)
    return check(anemone, path, program.target)


def error_of(us, published_us):
    return 100 * (us / published_us - 1)


def percent(error):
    return f"{round(error):+d} %"


def times(anemone, folder):
    facts = json.loads((ROOT / "docs" / "sources" / "cost_model.json").read_text())
    lines, errors = [], []
    for program in [*programs.of_m1(facts), *programs.of_m2(facts)]:
        plan = check_program(anemone, program, folder)
        us, limit = plan["summary"]["estimate_us"], plan["segments"][0]["cost"]["limit"]
        error = error_of(us, program.published_us)
        errors.append(abs(error))
        lines.append(f"| {program.words} | `{program.target}` | {program.published_us:.0f} | {us:.0f} | "
                     f"{percent(error)} | {limit} | {program.source} |")
    return lines, errors


def figures():
    table = json.loads((ROOT / "engine" / "tables" / "orion.json").read_text())
    return {row["name"]: row for row in table["headline_figures"]}


def m4_max(anemone, folder):
    lines = []
    for program, cpu_us in programs.of_m4_max(figures()):
        summary = check_program(anemone, program, folder)["summary"]
        us = summary["estimate_us"]
        line = (f"| {program.words} | {program.published_us:.0f} | {us:.0f} | "
                f"{percent(error_of(us, program.published_us))} |")
        if cpu_us is None:
            lines.append(f"{line} | | | |")
            continue
        us = summary["cpu_us"]
        lines.append(f"{line} {cpu_us:.0f} | {us:.0f} | {percent(error_of(us, cpu_us))} | "
                     f"{cpu_us / program.published_us:.1f} | {us / summary['estimate_us']:.1f} |")
    return lines


def decode(anemone, folder, dispatch_us):
    """The decode step of GPT-2: lines of a table, and of the paper's split the warning and the time that it
    would have with as many dispatches as the paper has (ms)."""
    one, padded = programs.Decode(1), programs.Decode(programs.LEAST_ROWS)
    row, rows = one.save(folder), padded.save(folder)
    split = "refuse:" + ",".join(f"node:{name}" for name in padded.on_cpu)
    engine_us = 1000 * figures()["gpt2_ane_decode_latency"]["value"]
    cpu_us = 1000 * figures()["gpt2_cpu_decode_p50"]["value"]
    lines = []
    for words, path, target, policy, published_us in (
            ("the CPU alone, 1 row", row, "h16g", "cpu", cpu_us),
            ("the CPU alone, 1 row, at the rates of the M5", row, "h17s", "cpu", cpu_us),
            ("the paper's split: attention and logits on the CPU, 16 rows", rows, "h16g", split, engine_us),
            ("the paper's split at the rates of the M5", rows, "h17s", split, engine_us),
            ("`max-engine`, 1 row", row, "h16g", "max-engine", None),
            ("`latency`, 1 row", row, "h16g", "latency", None),
            ("`latency`, 1 row", row, "h17s", "latency", None)):
        plan = check(anemone, path, target, policy)
        us, segments = plan["summary"]["estimate_us"], plan["summary"]["engine_segments"]
        published = "| |" if published_us is None else (
            f"| {published_us / 1000:.2f} | {percent(error_of(us, published_us))} |")
        lines.append(f"| {words} | `{target}` | {segments} | {us / 1000:.2f} {published}")
    plan = check(anemone, rows, "h16g", split)
    warned = [w["message"] for w in plan["warnings"] if w["rule"] == "slower-than-cpu"]
    missing = DECODE_PROGRAMS - plan["summary"]["engine_segments"]
    with_24 = plan["summary"]["estimate_us"] + missing * dispatch_us
    return lines, warned[0], with_24 / 1000


def rates(table):
    names = ("flops", "product_flops", "chain_flops", "bytes_per_second", "stream_bytes_per_second",
             "port_bytes_per_second")
    lines = []
    for row in table["fits"]:
        numbers = " | ".join(
            f"{row[name] / (1e12 if name.endswith('flops') else 1e9):g}" if name in row else "by cores"
            for name in names)
        dispatch = row.get("dispatch_us") or next(
            fit["dispatch_us"] for fit in table["fits"] if fit["target"] == row["scaled_from"])
        lines.append(f"| `{row['target'].lower()}` | {numbers} | {dispatch} | {row['status']} | "
                     f"{row['source']} |")
        if scaled := table["scaled"].get(row["target"]):
            targets = ", ".join(f"`{name.lower()}`" for name in scaled)
            lines.append(f"| {targets} {'| by cores ' * len(names)}| {dispatch} | predicted | "
                         f"{table['scaled_source']} |")
    return lines


def cpu_rates(table):
    units = {"flops": ("multiply-adds, two operations each", 1e9, "GFLOP/s"),
             "bytes_per_second": ("values read and written", 1e9, "GB/s"),
             "softmax_per_second": ("elements of a softmax", 1e6, "million/s")}
    return [f"| `{row['target'].lower()}` | {units[row['rate']][0]} | "
            f"{row['value'] / units[row['rate']][1]:g} {units[row['rate']][2]} | {row['status']} | "
            f"{row['source']} |" for row in table["cpu"]]


def page(anemone):
    table = json.loads((ROOT / "engine" / "tables" / "costs.json").read_text())
    dispatch_us = next(fit["dispatch_us"] for fit in table["fits"] if fit["target"] == "H17s")  # H16g has it too
    with tempfile.TemporaryDirectory() as folder:
        lines, errors = times(anemone, folder)
        decode_lines, warning, with_24 = decode(anemone, folder, dispatch_us)
        m4_lines = m4_max(anemone, folder)
    return TEXT.read_text(encoding="utf-8").format(
        rates="\n".join(rates(table)), cpu_rates="\n".join(cpu_rates(table)), times="\n".join(lines),
        m4_max="\n".join(m4_lines), decode="\n".join(decode_lines), warning=warning, with_24=with_24,
        graphs=table["error"]["graphs"], error=table["error"]["median_percent"],
        median=statistics.median(errors), worst=max(errors))


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(page(os.path.abspath(sys.argv[1])), encoding="utf-8")
