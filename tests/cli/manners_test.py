"""Manners of the command line: exit codes, help, errors, full disks, terminals."""

import json
import os
import pty
import re
import select
import subprocess
import unittest

import jsonschema
import numpy
import transcript_models
from onnx import helper, numpy_helper

from support import ANEMONE, ROOT, CliTest, anemone, model, relu, tensor

ERROR = json.loads((ROOT / "docs" / "schemas" / "error.json").read_text())
COMMANDS = ("check", "run", "confirm", "targets", "units", "convert", "compile", "patch", "bench", "doctor",
            "completion", "help")


def on_terminal(*words, columns=80, term="xterm", env=None):
    """Runs the command with stdout and stderr on a terminal. Returns the exit code and all bytes."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "", "TERM": term, "COLUMNS": str(columns), **(env or {})}
    process = subprocess.Popen([str(ANEMONE), *map(str, words)], stdin=follower, stdout=follower,
                               stderr=follower, env=environment, close_fds=True)
    os.close(follower)
    shown = b""
    while True:
        ready, _, _ = select.select([leader], [], [], 60)
        try:
            piece = os.read(leader, 65536) if ready else b""
        except OSError:  # the last program closed it
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(leader)
    return process.wait(), shown.decode(errors="replace").replace("\r\n", "\n")


class ExitCodes(CliTest):
    def test_a_name_that_does_not_exist_is_wrong_usage(self):
        path = self.write(relu(("N", 4)))
        array = self.folder / "x.npy"
        numpy.save(array, numpy.ones((1, 4), numpy.float32))
        bound = ["run", path, "--dim", "N=1"]
        for words, piece in (([*bound, "--input", f"foo={array}"], "--input"),
                             ([*bound, "--range", "foo=0:1"], "--range"),
                             ([*bound, "--input", f"x={array}", "--input", f"x={array}"], "twice"),
                             (["run", path, "--bucket", "foo=1,2"], "--bucket foo"),
                             (["check", path, "--bucket", "foo=1,2"], "--bucket foo"),
                             (["check", path, "--dim", "typo=1"], "--dim typo"),
                             (["check", path, "--shape", "z=1x4"], "--shape z"),
                             (["check", path, "--shape", "x=1x4x4"], "--shape"),
                             (["convert", path, "-o", self.folder / "d", "--dim", "typo=1"],
                              "--dim typo"),
                             (["compile", path, "-o", self.folder / "o.onnx", "--dim", "typo=1",
                               "--compress", "int8"], "--dim typo"),
                             (["bench", "-q", path, "--dim", "typo=1"], "--dim typo"),
                             (["run", path, "--target", "m1,m4"], "takes one target"),
                             (["confirm", "sofmax", "--input", "1x4"], "near: Softmax, softmax"),
                             (["units", "Sofmax"], "near: Softmax"),
                             (["run", path, "--threads", "-1"], "--threads"),
                             (["run", path, path], "takes one argument"),
                             (["targets", "x"], "takes no argument"),
                             (["diff", path, path, path], "takes 2 arguments"),
                             (["run", path, "-q=1"], "-q: takes no value, got '1'"),
                             (["run", path, "--output-dir", ""], "--output-dir: want a value, got ''"),
                             (["run", path, "--profile", ""], "--profile: want a value, got ''"),
                             (["run", "--", path, path], "takes one argument"),
                             (["run", "-q", "--"], "MODEL is required"),
                             (["run"], "MODEL is required"),
                             (["check", path, "--target", "m1,"], "a target name is empty"),
                             (["check", path, "--target"], "NAME[,NAME...]")):
            self.expect_error(anemone(*words), piece, code=2)

    def test_all_words_after_two_dashes_are_arguments(self):
        path = self.write(relu(), "-q")
        for words in (["run", "--", "-q"], ["run", "--repeat", "2", "--", "-q"], ["check", "--", "-q"]):
            done = subprocess.run([ANEMONE, *words], cwd=path.parent, capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("1 node", done.stdout)

    def test_a_size_that_the_model_cannot_have_is_wrong_usage(self):
        path = self.write(model([helper.make_node("Relu", ["x"], ["r"]),
                                 helper.make_node("Reshape", ["r", "s"], ["y"], "pairs")],
                                [tensor("x", ["n", 8])], [tensor("y", [None, 16])],
                                [numpy_helper.from_array(numpy.array([-1, 16], numpy.int64), "s")]))
        numpy.save(self.folder / "x.npy", numpy.ones((7, 8), numpy.float32))
        dim, shape = ["--dim", "n=7"], ["--shape", "x=7x8"]
        one = "n=7: the model cannot have this size: node 'pairs' (Reshape, "
        whole = "x=7x8: the model cannot have these sizes: node 'pairs' (Reshape, "
        out = self.folder / "out"
        for words, told in ((["check", path, *dim], one), (["check", path, *shape], whole),
                            (["check", path, "--bucket", "n=4,7"], one), (["run", path, *dim], one),
                            (["run", path, *shape], whole), (["run", path, "--bucket", "n=7"], one),
                            (["run", path, "--bucket", "n=8", *dim], one),
                            (["run", path, "--input", f"x={self.folder / 'x.npy'}"],
                             whole.replace("7x8", "7x?")),
                            (["bench", path, *dim], one), (["convert", path, "-o", out, *dim], one),
                            (["compile", path, "-o", out, "--compress", "int8", *shape], whole)):
            with self.subTest(words=words[:1] + words[2:]):
                done = anemone(*words, "-q")
                self.expect_error(done, f"{path}: {told}", "; sizes that fit: ", code=2)
                self.assertEqual(1, done.stderr.count(str(path)), done.stderr)
                self.assertNotIn("onnx.checker", done.stderr)

    def test_a_command_of_one_target_says_so(self):
        path = self.write(relu())
        for words in (["run", path], ["bench", path], ["convert", path, "-o", self.folder / "d"],
                      ["compile", path, "--compress", "int8", "-o", self.folder / "o.onnx"]):
            for targets, count in (("m1,m4", 2), ("all", 28)):
                self.expect_error(anemone(*words, "--target", targets), f"--target '{targets}': {words[0]} "
                                  f"takes one target, got {count}; give one", code=2)
            text = " ".join(anemone("help", words[0]).stdout.split())
            self.assertIn("--target NAME Plan and compile for this target. One target", text)
            self.assertNotIn("--target NAME[,NAME...]", text)
        for command in ("check", "confirm"):
            self.assertIn("--target NAME[,NAME...]", anemone("help", command).stdout)
        text = " ".join(anemone("help", "confirm").stdout.split())
        self.assertIn("--route ROUTE Ask only this compile path", text)
        self.assertIn("Default: both for a MIL operation", text)

    def test_no_option_is_ignored(self):
        path = self.write(relu())
        self.assertIn("\n  node ", anemone("bench", path, "-v", "--repeat", "2").stdout)
        exp = self.write(model([helper.make_node("Exp", ["x"], ["y"])], [tensor("x", (1, 4))],
                               [tensor("y", (1, 4))]), "exp.onnx")
        brief, full = (anemone("convert", exp, "-o", self.folder / str(len(words)), *words).stdout
                       for words in ([], ["-v"]))
        self.assertIn("(1 unit in a form not seen to compile: see -v)", brief)
        self.assertIn("Exp", full)
        self.assertNotIn("Exp", brief)
        self.expect_error(anemone("compile", path, "--repeat", "3", "--compress", "int8", "-o", "o.onnx"),
                          "--repeat: compile has no such option", code=2)

    def test_errors_name_the_model(self):
        free, good = self.write(relu(("N", 4)), "free.onnx"), self.write(relu(), "good.onnx")
        for command in ("run", "bench"):
            self.expect_error(anemone(command, "-q", free), f"{free}: input 'x': dimension 0")
            done = anemone(command, "-q", good, "--range", "z=0:1")
            self.expect_error(done, f"{good}: --range 'z'", code=2)
        done = anemone("bench", "--json", "--repeat", "2", "-q", free, good)
        self.expect_error(done, str(free))
        self.assertTrue(json.loads(done.stdout)["models"][0]["error"].startswith(f"{free}: input 'x'"))
        for command in ("run", "bench", "check"):  # once
            self.assertEqual(1, anemone(command, "-q", self.folder / "none.onnx").stderr.count("none.onnx: "))

    def test_data_and_files_are_refused(self):
        path = self.write(relu())
        array = self.folder / "x.npy"
        numpy.save(array, numpy.ones((2, 4), numpy.float32))
        for words in (["run", path, "--input", f"x={array}"],
                      ["run", path, "--input", f"x={self.folder / 'none.npy'}"],
                      ["check", self.folder / "none.onnx"],
                      ["run", self.write(relu(("N", 4)), "free.onnx")]):
            self.expect_error(anemone(*words))

    def test_an_error_is_a_document_with_json(self):
        path = self.write(relu())
        none = self.folder / "none.onnx"
        for words, code in ((["run", none], 1), (["convert", none, "-o", self.folder / "d"], 1),
                            (["compile", none, "-o", self.folder / "o.onnx", "--compress", "int8"], 1),
                            (["run", path, "--input", "foo=x.npy"], 2), (["run", path, "--nonsense"], 2),
                            (["units", "Sofmax"], 2), (["check"], 2), (["targets", "x"], 2)):
            done = anemone(*words, "--json")
            self.expect_error(done, code=code)
            document = json.loads(done.stdout)
            jsonschema.validate(document, ERROR)
            self.assertEqual(f"anemone: error: {document['error']}", done.stderr.splitlines()[-1])

    def test_two_names_of_a_target_are_one_target(self):
        path = self.write(relu())
        for names in ("m4,m4", "m4, h16", "M4,H16"):
            checked = json.loads(anemone("check", path, "--target", names, "--json").stdout)
            self.assertEqual(["h16"], [t["target"] for t in checked["models"][0]["targets"]])
        self.assertEqual(0, anemone("run", path, "--target", "m1,h13").returncode)

    def test_products_are_found_as_people_write_them(self):
        path = self.write(relu())
        for name in ("M1 Pro", "m1pro", "m1-pro", "M1_PRO"):
            checked = json.loads(anemone("check", path, "--target", name, "--json").stdout)
            self.assertEqual("h13g", checked["models"][0]["targets"][0]["target"])

    def test_a_bound_size_is_at_least_1(self):
        path = self.write(relu(("N", 4)))
        self.expect_error(anemone("check", path, "--dim", "N=0"), "--dim: a size is at least 1", code=2)
        self.assertEqual(0, anemone("run", path, "--shape", "x=0x4").returncode)
        declared = self.write(relu((0, 4)), "declared.onnx")  # a size, as for ONNX Runtime
        done = anemone("run", declared, "--compare", "--output-dir", self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((0, 4), numpy.load(self.folder / "y.npy").shape)

    def test_shapes_have_commas_too(self):
        path = self.write(relu(("N", None)))
        for shape in ("2,3", "2x3"):
            done = anemone("run", path, "--shape", f"x={shape}", "--json")
            self.assertEqual([2, 3], json.loads(done.stdout)["outputs"][0]["shape"])

    def test_no_threads_are_all_cores(self):
        self.assertEqual(0, anemone("run", self.write(relu()), "--threads", "0").returncode)


class Output(CliTest):
    """Output that cannot be written is an error of every command, in every form."""

    def commands(self):
        path = self.write(relu())
        big = self.write(model([helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(300)],
                               [tensor("t0", (1, 4))], [tensor("t300", (1, 4))]), "big.onnx")
        yield from (["check", path], ["check", path, "--json"], ["check", big, "--json"],
                    ["check", big, "-v"], ["run", path], ["run", path, "--json"],
                    ["bench", path, "--repeat", "2"], ["bench", path, "--repeat", "2", "--json"],
                    ["confirm", "relu", "--input", "1x4"], ["confirm", "relu", "--input", "1x4", "--json"],
                    ["targets"], ["targets", "--json"], ["units"], ["units", "--json"],
                    ["completion", "bash"], ["docs", "markdown"], ["help"], ["help", "run"],
                    ["--help"], ["run", "--help"], ["--version"])
        for form in ([], ["--json"]):
            yield ["convert", path, "-o", self.folder / f"d{len(form)}", *form]
            yield ["doctor", *form]

    def expect_write_error(self, words, why, **streams):
        done = subprocess.run([str(ANEMONE), *map(str, words)], stderr=subprocess.PIPE, text=True,
                              timeout=60, **streams)
        self.assertEqual(1, done.returncode, words)
        self.assertEqual(f"anemone: error: standard output: write error: {why}",
                         done.stderr.splitlines()[-1], words)

    def test_a_full_disk(self):
        for words in self.commands():
            with open("/dev/full", "w") as full:
                self.expect_write_error(words, "No space left on device", stdout=full)

    def test_files_that_are_not_files(self):
        path = self.write(model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", (1, 64))],
                                [tensor("y", (1, 64))],
                                [helper.make_tensor("w", 1, (64, 64), numpy.eye(64).ravel())]))
        for words, told in (
                (["convert", path, "-o", "/dev/full"], "'/dev/full': is not a folder; choose another name"),
                (["check", path, "--save-rejected", "/dev/full"],
                 "'/dev/full': is not a folder; choose another name"),
                (["run", path, "--output-dir", "/dev/full"], "/dev/full"),
                (["run", path, "--profile", "/dev/full"], "'/dev/full': cannot be written: No space left"),
                (["compile", path, "--compress", "int8", "-q", "-o", "/dev/full"],
                 "'/dev/full': cannot be written: No space left")):
            with self.subTest(words[0]):
                self.expect_error(anemone(*words), told)

    def test_a_closed_output(self):
        for words in (["check", self.write(relu())], ["targets", "--json"], ["--version"],
                      ["convert", self.write(relu()), "-o", self.folder / "d"]):
            self.expect_write_error(words, "Bad file descriptor", preexec_fn=lambda: os.close(1))

    def test_a_closed_pipe(self):
        ends = os.pipe()
        os.close(ends[0])
        # Python ignores SIGPIPE, and so does the command if it inherits that.
        self.expect_write_error(["units", "--json"], "Broken pipe", stdout=ends[1],
                                restore_signals=False)
        os.close(ends[1])


class Help(CliTest):
    def test_help_is_a_command(self):
        self.assertEqual(anemone("--help").stdout, anemone("help").stdout)
        for command in COMMANDS:
            self.assertEqual(anemone(command, "--help").stdout, anemone("help", command).stdout)
            self.assertIn(f"Usage: anemone {command}", anemone("help", command).stdout)
            self.assertIn(f"\n  {command} ", anemone("help").stdout)
        self.expect_error(anemone("help", "chek"), "did you mean check?", code=2)

    def test_examples_run(self):
        path = self.folder / "net.onnx"
        made = transcript_models.wide()
        path.write_bytes(made.SerializeToString())
        numpy.savez(self.folder / "new.npz", **{t.name: 0.5 * numpy_helper.to_array(t) for t in made.graph.initializer})
        found = 0
        for command in COMMANDS:
            for line in re.findall(r"(?m)^Example:\n  anemone (.*)", anemone("help", command).stdout):
                words = [str(self.folder / word) if "." in word else word for word in line.split()]
                self.assertEqual(command, words[0])
                done = anemone(*words, *(["--repeat", "1"] if command == "bench" else []))
                self.assertEqual(0, done.returncode, done.stderr)
                found += 1
        self.assertEqual(8, found)

    def test_help_explains_each_exit_code_once(self):
        codes = re.findall(r"(?m)^  (\d) +\S", anemone("--help").stdout)
        self.assertEqual(["0", "1", "2", "3"], codes)

    def test_texts_fit_the_terminal(self):
        texts = [["help"], *(["help", command] for command in COMMANDS), ["targets"], ["units"],
                 ["units", "Softmax"]]
        for columns in (80, 60, 120):
            for words in texts:
                text = anemone(*words, env={"COLUMNS": str(columns)}).stdout
                longest = max(text.splitlines(), key=len)
                self.assertLessEqual(len(longest), columns, longest)
        wide = anemone("help", "run", env={"COLUMNS": "200"}).stdout
        self.assertGreater(max(map(len, wide.splitlines())), 120)

    def test_results_fit_the_terminal(self):
        long = "a_name_that_is_rather_long_for_an_output_" + "x" * 30
        path = self.write(model([helper.make_node("Relu", ["x"], [long])], [tensor("x", (1, 4))],
                                [tensor(long, (1, 4))]))
        for columns in (80, 76):
            for words in (["run", path, "--compare"], ["run", path, "--hazards", "-v"], ["check", path, "-v"],
                          ["bench", path, "--repeat", "2"], ["convert", path, "-o", self.folder / str(columns)]):
                text = anemone(*words, env={"COLUMNS": str(columns)}).stdout
                for line in text.splitlines():
                    words_of = [word for word in line.split() if len(word) > columns // 2]
                    if not words_of:  # a long word is not broken
                        self.assertLessEqual(len(line), columns, line)

    def test_nothing_of_the_parsers_own_words(self):
        for command in COMMANDS:
            text = anemone("help", command).stdout
            for word in ("TEXT", "REQUIRED", "(1x)", "SUBCOMMAND", "..."):
                self.assertNotIn(word, text.replace("[,N...]", "").replace("NAME...]", "")
                                 .replace("MODEL...", "").replace("TYPE...", "").replace("UNIT...", "")
                                 .replace("OPTION[,...]", ""))

    def test_did_you_mean(self):
        path = self.write(relu())
        for words, piece in ((["chek", path], "command 'chek': unknown; did you mean check?"),
                             (["confrim"], "did you mean confirm?"),
                             (["version"], "'version': unknown; give --version"),
                             (["-v"], "'-v' is not a command; for the version give --version"),
                             (["check", path, "--require-engine-share", "95%"], "want a share from 0 to 1"),
                             (["check", path, "-t", "m1"], "did you mean --target or --time-limit?"),
                             (["run", path, "-s", "1"], "did you mean --shape or --state or --seed?"),
                             (["check", path, "--policy", "refuse:Pool"], "no unit 'Pool'; did you mean Pooling?"),
                             (["run", path, "--range", "x"], "want NAME=LOW:HIGH, got 'x'"),
                             (["run", path, "--range", "x=-inf:inf"], "want LOW:HIGH within float32"),
                             (["run", path, "-qx"], "-x: run has no such option"),
                             (["run", path, "--tarjet", "m1"], "did you mean --target?")):
            self.expect_error(anemone(*words), piece, code=2)
        self.expect_error(anemone("xyzzy", path), "command 'xyzzy': unknown; anemone help lists the commands", code=2)
        self.assertIn("near: ", anemone("check", path, "--target", "m1prp").stderr)


class Terminal(CliTest):
    def test_colour_only_where_it_is_understood(self):
        path = self.write(relu())
        self.assertIn("\x1b[1m", on_terminal("check", path)[1])
        self.assertNotIn("\x1b", on_terminal("check", path, term="dumb")[1])
        self.assertNotIn("\x1b", on_terminal("check", path, env={"NO_COLOR": "1"})[1])

    def test_progress_is_erased_before_the_result(self):
        words = ["run", self.slow_model(), "--repeat", "100"]
        code, shown = on_terminal(*words)
        self.assertEqual(0, code, shown)
        before, erased, after = shown.rpartition("\r\x1b[K")
        self.assertIn("\r\x1b[Kanemone: running", before + erased)
        self.assertNotIn("anemone:", after)
        self.assertIn("float32", after)  # the result
        code, shown = on_terminal(*words, term="dumb")
        self.assertEqual(0, code, shown)
        self.assertNotIn("\x1b", shown)
        self.assertIn(" ...\n", shown)

    def slow_model(self):
        size = 512
        weight = helper.make_tensor("w", 1, [size, size], numpy.eye(size, dtype=numpy.float32).flatten())
        nodes, last = [], "x"
        for i in range(12):
            nodes.append(helper.make_node("MatMul", [last, "w"], [f"t{i}"]))
            last = f"t{i}"
        return self.write(model(nodes, [tensor("x", (size, size))], [tensor(last, (size, size))],
                                [weight]), "slow.onnx")


class Targets(CliTest):
    def test_unreleased_names_are_marked(self):
        lines = {line.split()[0]: line for line in anemone("targets").stdout.splitlines() if line}
        for name in ("m9", "t0", "m11", "h16s"):
            self.assertIn("unreleased code name", lines[name])
        self.assertIn("compiler profile", lines["u1"])
        self.assertTrue(lines["m9"].endswith("few limits known)"), lines["m9"])
        self.assertIn("M1 Pro, M1 Max, M1 Ultra", lines["h13g"])
        rows = {row["target"]: row for row in json.loads(anemone("targets", "--json").stdout)["targets"]}
        self.assertEqual((True, None), (rows["m9"]["code_name"], rows["m9"]["products"]))
        self.assertEqual((False, "M1"), (rows["h13"]["code_name"], rows["h13"]["label"]))


if __name__ == "__main__":
    unittest.main()
