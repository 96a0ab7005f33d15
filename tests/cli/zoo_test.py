"""`anemone zoo`: sources, results, failures that are results, going on after a kill, and the pages."""

import hashlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
import unittest

import jsonschema
from onnx import helper

from support import ANEMONE, ROOT, SANITIZED, CliTest, anemone, environment, model, relu, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "zoo.json").read_text())


def without_times(line):
    targets = [{**target, "compile_ms": target["compile_ms"] is not None} for target in line["targets"]]
    return {**line, "seconds": 0, "targets": targets}


def chain(*operators):
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    return model(nodes, [tensor("v0", [1, 8])], [tensor(f"v{len(operators)}", [1, 8])])


class Zoo(CliTest):
    def setUp(self):
        super().setUp()
        self.models = self.folder / "models"
        self.models.mkdir()
        self.out = self.folder / "out"

    def put(self, name, what):
        path = self.models / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(what if isinstance(what, bytes) else what.SerializeToString())
        return path

    def zoo(self, *words, code=0, sources=None):
        done = anemone("zoo", *(sources or [self.models]), "-o", self.out, "--json", *words, timeout=120)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return {pathlib.Path(line["path"]).name: line for line in document["models"]}

    def lines(self):
        lines = [json.loads(line) for line in (self.out / "results.jsonl").read_text().splitlines()]
        for line in lines:
            jsonschema.validate(line, SCHEMA["$defs"]["line"])
        return lines

    def test_results_are_those_of_check_and_run(self):
        path = self.put("net.onnx", chain("Relu", "Erf", "Sigmoid"))
        line = self.zoo("--target", "h11,m1", "--run")["net.onnx"]
        self.assertEqual("ok", line["status"])
        checked = json.loads(anemone("check", path, "--target", "h11,h13", "--json").stdout)["models"][0]
        for target, plan in zip(line["targets"], checked["targets"]):
            self.assertEqual((plan["target"], plan["summary"]), (target["target"], target["summary"]))
            self.assertEqual(plan["summary"]["estimate_us"], target["estimate_us"])
            self.assertGreater(target["cosine"], 0.999)
            self.assertTrue(target["within_tolerance"])
            on_cpu = sum(reason["nodes"] for reason in target["reasons"])
            self.assertEqual(plan["summary"]["cpu_nodes"], on_cpu)
        self.assertEqual([line], self.lines())

    def test_folders_files_and_manifests(self):
        self.put("a/b/one.onnx", relu())
        self.put("two.onnx", relu())
        self.put("notes.txt", b"no model")
        free = self.put("other/free.onnx", relu(("batch", 4)))
        manifest = self.write(json.dumps({"models": [{"path": str(free), "dims": {"batch": 3}}]}).encode(),
                              "manifest.json")
        lines = self.zoo(sources=[self.models / "a", self.models / "two.onnx", manifest])
        self.assertEqual({"one.onnx", "two.onnx", "free.onnx"}, set(lines))
        self.assertEqual([], lines["free.onnx"]["targets"][0]["summary"]["free_dimensions"])

    def test_a_name_that_looks_like_an_option(self):
        self.put("-v.onnx", relu())
        done = subprocess.run([str(ANEMONE), "zoo", ".", "-o", str(self.out)], cwd=self.models,
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([("-v.onnx", "ok", None)],
                         [(line["path"], line["status"], line["error"]) for line in self.lines()])

    def test_a_folder_of_something_else_is_refused(self):
        path = self.put("net.onnx", relu())
        package = self.folder / "net.mlpackage"
        package.mkdir()
        (package / "Manifest.json").write_text("{}")
        for folder in (package, self.models):
            before = sorted(folder.rglob("*"))
            done = anemone("zoo", path, "-o", folder)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn("is not empty, and has no results.jsonl", done.stderr)
            self.assertEqual(before, sorted(folder.rglob("*")))
        self.out.mkdir()  # an empty folder serves, and one where a zoo was ended before its first result
        (self.out / "results.jsonl.anemone-0123456789abcdef.tmp").write_text("")
        self.zoo()
        (self.out / "results.jsonl").write_text("")
        self.zoo()

    def test_a_model_that_is_listed_twice(self):
        free = self.write(relu(("batch", 8)), "free.onnx")

        def manifest(*sizes):
            models = [{"path": str(free), "dims": {"batch": size}} for size in sizes]
            return self.write(json.dumps({"models": models}).encode(), "manifest.json")
        lines = self.zoo(sources=[free, manifest(3, 3)])  # the sizes are those of the manifest
        [line] = lines.values()
        self.assertEqual([], line["targets"][0]["summary"]["free_dimensions"])
        done = anemone("zoo", manifest(1, 2), "-o", self.out)
        self.assertEqual(1, done.returncode)
        self.assertIn("is listed twice, with other sizes or ranges", done.stderr)

    def test_a_manifest_names_no_paths_outside_the_cache(self):
        for entry in ({"package": "../../etc", "file": "net.onnx"}, {"package": "a/b", "file": "net.onnx"},
                      {"package": "a", "file": ".."}, {"package": "a", "file": "b/"}, {"package": "..", "file": "c"},
                      {"package": "/etc", "file": "hosts"}):
            manifest = self.write(json.dumps({"models": [entry]}).encode(), "manifest.json")
            done = anemone("zoo", manifest, "-o", self.out)
            self.assertEqual(1, done.returncode, entry)
            self.assertIn("want names of a package and of a file in it", done.stderr)

    def test_a_bad_model_is_a_result(self):
        self.put("good.onnx", relu())
        self.put("damaged.onnx", relu().SerializeToString()[:40])
        self.put("empty.onnx", b"")
        lines = self.zoo(code=1)
        self.assertEqual(["refused", "refused", "ok"],
                         [lines[n]["status"] for n in ("damaged.onnx", "empty.onnx", "good.onnx")])
        self.assertIn("damaged.onnx", lines["damaged.onnx"]["error"])
        said = anemone("zoo", self.models, "-o", self.out).stdout
        self.assertIn("damaged.onnx: refused, check: ", " ".join(said.split()))
        self.assertIn("3 models, 1 ok, 2 refused", said)
        self.assertNotIn("check", anemone("zoo", self.models, "-o", self.out, "-q").stdout)
        self.lines()

    def test_the_hash_is_sha256(self):
        random_bytes = random.Random(3).randbytes((16 << 20) + 100)  # it is read in pieces of 16 MiB
        for size in (0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 200, 16 << 20, (16 << 20) + 1, len(random_bytes)):
            self.put(f"{size}.onnx", random_bytes[:size])
        for name, line in self.zoo("--jobs", "4", code=1).items():
            size = int(name.removesuffix(".onnx"))
            wanted = hashlib.sha256(random_bytes[:size]).hexdigest() if size else ""
            self.assertEqual(wanted, line["sha256"], name)

    def test_a_file_of_a_terabyte_does_not_stop_the_others(self):
        self.put("net.onnx", relu())
        with open(self.models / "large.onnx", "wb") as file:
            file.truncate(1 << 40)  # takes no space
        lines = self.zoo("--timeout", "5", "--jobs", "1", code=1)
        self.assertEqual("ok", lines["net.onnx"]["status"])
        self.assertNotEqual("ok", lines["large.onnx"]["status"])
        self.assertEqual("", lines["large.onnx"]["sha256"])

    def test_time_and_memory_are_limited(self):
        self.put("net.onnx", relu())
        line = self.zoo("--timeout", "0.001", code=1)["net.onnx"]
        self.assertEqual("timeout", line["status"])
        self.assertEqual("ok", self.zoo("--timeout", "60", "--retry-failed")["net.onnx"]["status"])
        for seconds in ("-1", "inf", "1e300", "nan"):
            done = anemone("zoo", self.models, "-o", self.out, "--timeout", seconds)
            self.assertEqual(2, done.returncode)
            self.assertIn("--timeout: want a number", done.stderr)
        if not SANITIZED:  # a sanitizer reserves terabytes of addresses
            self.put("large.onnx", relu((1, 400_000_000)))
            lines = self.zoo("--memory-limit", "1G", "--run", code=1)
            self.assertEqual(("ok", "out-of-memory"), (lines["net.onnx"]["status"], lines["large.onnx"]["status"]))

    @unittest.skipIf(SANITIZED, "a sanitizer reserves terabytes of addresses")
    def test_a_limit_with_which_the_command_does_not_start_is_refused(self):
        """Linux ended it with a signal, so that every model had crashed."""
        self.put("net.onnx", relu())
        for limit in ("1", "10M", "24M"):
            done = anemone("zoo", self.models, "-o", self.out, "--memory-limit", limit)
            self.expect_error(done, "--memory-limit: the command itself does not start with", code=2)
            least = int(re.search(r"give at least (\d+)M", done.stderr)[1])
            self.assertIn(least, range(25, 64))
            self.assertFalse(self.out.exists())
        line = self.zoo("--memory-limit", f"{least}M", "--policy", "cpu", code=1)["net.onnx"]
        self.assertEqual("out-of-memory", line["status"])  # not even a library can be loaded

    def test_finished_models_are_not_repeated(self):
        self.put("net.onnx", relu())
        self.zoo()
        before = (self.out / "results.jsonl").read_text()
        self.zoo()
        self.assertEqual(before, (self.out / "results.jsonl").read_text())  # also the seconds
        self.zoo("--target", "h14")
        self.assertNotEqual(before, (self.out / "results.jsonl").read_text())
        self.put("net.onnx", relu((1, 5)))
        changed = self.zoo("--target", "h14")["net.onnx"]
        self.assertNotEqual(json.loads(before)["sha256"], changed["sha256"])

    def test_only_failed_models_are_retried(self):
        self.put("bad.onnx", b"bad")
        self.put("good.onnx", relu())
        first = self.zoo(code=1)
        again = self.zoo("--retry-failed", code=1)
        self.assertEqual(first["good.onnx"], again["good.onnx"])
        self.assertEqual("refused", again["bad.onnx"]["status"])

    def test_a_killed_run_goes_on(self):
        for i in range(12):
            self.put(f"net{i}.onnx", chain(*["Relu", "Erf"] * (1 + i)))
        whole = self.zoo("--run")
        os.rename(self.out, self.folder / "whole")
        words = [str(ANEMONE), "zoo", str(self.models), "-o", str(self.out), "--run", "--jobs", "2"]
        for seed in range(3):
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=environment())
            time.sleep(random.Random(seed).uniform(0.05, 0.4))
            process.send_signal(signal.SIGKILL)
            process.wait()
        with (self.out / "results.jsonl").open("a") as file:  # as if a write had been cut
            file.write('{"schema": 1, "id"')
        parts = self.zoo("--run", "--jobs", "2")
        self.assertEqual({name: without_times(line) for name, line in whole.items()},
                         {name: without_times(line) for name, line in parts.items()})
        self.assertEqual(12, len(self.lines()))

    def test_a_foreign_file_is_not_overwritten(self):
        self.put("net.onnx", relu())
        self.out.mkdir()
        line = {"path": "x", "key": "k", "id": "../x", "status": "ok", "targets": []}
        many = ",".join(f'"k{i}": 0' for i in range(100_000))
        for text, said in [("hello\n", "is not valid JSON"), ("{}\n", "is not a result"),
                           ('{"path": "x"}\n', "is not a result"),
                           (json.dumps(line) + "\n", "is not a result"),  # an id outside of the folder
                           ("[" * 1_000_000 + "\n", "is nested deeper than 16 levels"),
                           ('{"a":' * 1_000_000 + "\n", "is nested deeper than 16 levels"),
                           ("{" + many + "}\n", "has an object of more than 1000 keys"),
                           ("[" + " " * (16 << 20) + "]\n", "is longer than 16 MiB")]:
            (self.out / "results.jsonl").write_text(text)
            done = anemone("zoo", self.models, "-o", self.out)
            self.expect_error(done, "line 1 " + said, "choose another folder")
            self.assertEqual(text, (self.out / "results.jsonl").read_text())

    def test_odd_files_of_a_folder(self):
        path = self.put("net.onnx", relu())
        (self.models / "again").symlink_to(self.models)  # a loop
        (self.models / "far.onnx").symlink_to("nowhere")
        (self.models / "self.onnx").symlink_to("self.onnx")
        os.mkfifo(self.models / "pipe.onnx")
        os.rename(path, os.path.join(os.fsencode(self.models), b"\xff\x1b.onnx"))
        lines = self.zoo(code=1, sources=[self.models, f"{self.models}//pipe.onnx"])
        self.assertEqual({"far.onnx": "refused", "self.onnx": "refused", "pipe.onnx": "refused",
                          "\\xff\\x1b.onnx": "ok"}, {name: line["status"] for name, line in lines.items()})
        before = [line for line in self.lines() if line["status"] == "ok"]
        self.zoo(code=1)
        self.assertEqual(before, [line for line in self.lines() if line["status"] == "ok"])
        self.assertEqual(4, len(self.lines()))

    def test_names_are_data_on_the_pages(self):
        name = "</script><img src=x onerror=alert(1)>\u202e'\".onnx".replace("/", "\u2044")
        self.put(name, chain("Relu", "Erf"))
        self.zoo("--target", "h11")
        pages = list(self.out.rglob("*.html"))
        self.assertGreaterEqual(len(pages), 3)
        for page in pages:
            html = page.read_text()
            self.assertNotIn("<img", html)
            self.assertNotIn("\u202e", html)
            self.assertIn("\\u202e", html) if page.parent.parent.name == "models" else None
            self.assertEqual([], re.findall(r"(?:src|href)=\"?(?:https?:)?//", html))

    def test_every_link_leads_to_a_page(self):
        self.put("one.onnx", chain("Relu", "Erf"))
        self.put("bad.onnx", b"bad")
        self.zoo("--target", "h11,m4", code=1)
        for page in self.out.rglob("*.html"):
            for link in re.findall(r'href="([^"]+)"', page.read_text()):
                self.assertTrue((page.parent / link).is_file(), f"{page}: {link}")
        self.assertIn("2 models, 1 ok, 1 refused", (self.out / "index.html").read_text())

    def test_conversion(self):
        self.put("net.onnx", chain("Relu", "Sigmoid"))
        for _ in range(2):
            line = self.zoo("--convert", "mil", "--retry-failed")["net.onnx"]
        self.assertEqual("ok", line["status"])
        self.assertTrue((self.out / "models" / line["id"] / "mil" / "manifest.json").is_file())

    def test_odd_values_in_a_result_are_not_trusted(self):
        reason = {"rule": "<b>../../x", "nodes": 2**63, "macs": -5, "operators": "x", "message": 3}
        targets = [{"target": "h13", "summary": [], "reasons": [reason, 7, None]}, {"reasons": {"a": 1}}, 4, None]
        self.out.mkdir()
        (self.out / "results.jsonl").write_text(json.dumps(
            {"path": "x", "key": "k", "id": "x-1", "status": "<i>", "error": 5, "targets": targets}) + "\n")
        self.put("net.onnx", relu())
        self.zoo()
        for page in self.out.rglob("*.html"):
            self.assertNotIn("<b>", page.read_text())
            self.assertNotIn("<i>&", page.read_text())

    def test_compilation(self):
        self.put("net.onnx", chain("Relu", "Erf", "Sigmoid"))
        line = self.zoo("--compile", "--target", "h11,m1")["net.onnx"]
        self.assertEqual("ok", line["status"])
        for target in line["targets"]:
            self.assertGreater(target["compile_ms"], 0)
        self.assertIn(">compile<", (self.out / "index.html").read_text())
        # An operator that nobody knows has a plan, but no program.
        nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Unheard", ["y"], ["z"], domain="far")]
        self.put("net.onnx", model(nodes, [tensor("x", [1, 8])], [tensor("z", [1, 8])], domains=["far"]))
        line = self.zoo("--compile", "--target", "h11", code=1)["net.onnx"]
        self.assertEqual(("refused", None), (line["status"], line["targets"][0]["compile_ms"]))
        self.assertRegex(line["error"], "^compile for h11: .*Unheard")
        self.assertEqual(1, line["targets"][0]["summary"]["engine_segments"])
        self.assertIn(line["error"][:20], (self.out / "models" / line["id"] / "index.html").read_text())

    def test_a_free_dimension_is_named(self):
        self.put("net.onnx", relu(("batch", 4)))
        line = self.zoo("--compile", code=1)["net.onnx"]
        self.assertIn("batch", line["error"])
        self.assertEqual("ok", self.zoo("--compile", "--dim", "batch=2")["net.onnx"]["status"])

    def test_wrong_usage(self):
        self.put("net.onnx", relu())
        for words, code, said in [(["zoo", self.models], 2, "--output"),
                                  (["zoo", self.folder / "none", "-o", self.out], 1, "none"),
                                  (["zoo", self.models, "-o", self.out, "--target", "x1"], 2, "x1"),
                                  (["zoo", self.models, "-o", self.out, "--jobs", "0"], 2, "--jobs")]:
            done = anemone(*words)
            self.assertEqual(code, done.returncode, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
