"""The page of `anemone report` in a headless Chromium: what it says, clicks, keys, names that are markup,
10,000 and 100,000 nodes, both widths and colour schemes. `--pictures` also renews those of docs/report.md.

    report_page_test.py build/release/anemone . [--pictures]
"""

import json
import pathlib
import re
import sys
import tempfile
import unittest

import jsonschema
from onnx import TensorProto, helper

PICTURES = "--pictures" in sys.argv and sys.argv.remove("--pictures") is None
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import driver  # noqa: E402
from support import ROOT, anemone, model, relu, tensor  # noqa: E402

EXPORTED = ROOT / "models" / "exported"
SHAPE = [1, 8, 6, 6]
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\u2066\u0007<!--"


def data_of(html):
    """The data in a page, as its script reads it."""
    return json.loads(re.search(r'<script type="application/json" id="plan">(.*?)</script>', html, re.S)[1])


def chain(*operators, names=None):
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=names[i] if names else f"{op}_{i}")
             for i, op in enumerate(operators)]
    return model(nodes, [tensor("v0", SHAPE)], [tensor(f"v{len(operators)}", SHAPE)])


def deep(layers):
    """Layers of ten nodes, with a residual and a node that the engine refuses now and then."""
    nodes, last = [], "x"

    def add(op, name, *inputs):
        nodes.append(helper.make_node(op, list(inputs), [f"{name}:0"], name=name))
        return f"{name}:0"
    for i in range(layers):
        prefix = f"/model/layers.{i}"
        a = add("Relu", f"{prefix}/attn/Relu", last)
        b = add("Sigmoid", f"{prefix}/attn/q/Sigmoid", a)
        c = add("Tanh", f"{prefix}/attn/k/Tanh", a)
        d = add("Mul", f"{prefix}/attn/Mul", b, c)
        refused = i % 20 == 19
        e = add("Bernoulli" if refused else "Abs", f"{prefix}/attn/act", d)
        f = add("Add", f"{prefix}/Add", e, last)
        g = add("Relu", f"{prefix}/mlp/Relu", f)
        h = add("Sigmoid", f"{prefix}/mlp/Sigmoid", g)
        j = add("Mul", f"{prefix}/mlp/Mul", g, h)
        last = add("Add", f"{prefix}/mlp/Add", j, f)
    return model(nodes, [tensor("x", SHAPE)], [tensor(last, SHAPE)])


def branches():
    """An If with a node in one body, and two in the other."""
    def body(name, *operators):
        nodes = [helper.make_node(op, [f"{name}{i}" if i else "x"], [f"{name}{i + 1}"], name=f"{name}_{op}")
                 for i, op in enumerate(operators)]
        return helper.make_graph(nodes, name, [], [tensor(f"{name}{len(operators)}", SHAPE)])
    choice = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=body("then", "Relu"),
                              else_branch=body("else", "Sigmoid", "Tanh"))
    return model([choice], [tensor("x", SHAPE), tensor("c", [], TensorProto.BOOL)], [tensor("y", SHAPE)])


@unittest.skipIf(driver.why_not(), driver.why_not())
class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(driver.chromium())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def report(self, what, *words, name="net"):
        """The path of the page, and its data."""
        path = what
        if not isinstance(what, pathlib.Path):
            path = self.folder / f"{name}.onnx"
            path.write_bytes(what.SerializeToString())
        output = self.folder / f"{name}.html"
        done = anemone("report", path, "-o", output, *words, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        return output, data_of(output.read_text())

    def opened(self, path, **options):
        page = driver.opened(self.browser, path, **options)
        self.addCleanup(driver.closed, page)
        return page

    def test_the_answer_the_advice_and_the_targets_are_those_of_check(self):
        source = EXPORTED / "gpt2_ort.onnx"
        path, _ = self.report(source, "--target", "m1,m4")
        checked = json.loads(anemone("check", source, "--target", "m1,m4", "--json").stdout)["models"][0]
        page = self.opened(path)
        first = checked["targets"][0]
        self.assertIn(f"{first['summary']['cpu_nodes']} node", page.inner_text("#answer"))
        self.assertIn("The M1 runs", page.inner_text("#answer"))
        self.assertEqual(2, page.locator("#targets table >> nth=0 >> tbody tr").count())
        refused = {node["rule"] for node in first["nodes"] if node["placement"] == "cpu"}
        page.evaluate("document.querySelectorAll('#advice details').forEach(part => { part.open = true; })")
        advice = page.inner_text("#advice")
        for rule in list(refused)[:3]:
            self.assertIn(rule, advice)
        self.assertEqual([], page.problems)

    def test_a_click_and_enter_fill_the_panel(self):
        path, _ = self.report(chain("Relu", "Bernoulli", "Sigmoid"), "--target", "m1,m4", name="click")
        page = self.opened(path)
        self.assertIn("Click a node", page.inner_text("#node"))
        page.click('[data-node="/#1"]')
        said = page.inner_text("#node")
        for word in ("Bernoulli_1", "M1", "M4", "rejected", "layer", "rule", "source"):
            self.assertIn(word, said)
        page.focus('[data-node="/#2"]')
        page.keyboard.press("Enter")
        self.assertIn("Sigmoid_2", page.inner_text("#node"))
        self.assertIn("accepted", page.inner_text("#node"))
        page.keyboard.press("ArrowUp")
        self.assertEqual("/#1", page.evaluate("document.activeElement.dataset.node"))
        page.keyboard.press("ArrowDown")
        self.assertEqual("/#2", page.evaluate("document.activeElement.dataset.node"))
        page.keyboard.press("Escape")
        self.assertIn("Click a node", page.inner_text("#node"))
        page.click("#advice button.link")
        self.assertIn("Bernoulli_1", page.inner_text("#node"))
        self.assertEqual([], page.problems)

    def test_search_filters_and_selects(self):
        path, _ = self.report(deep(30), name="search")
        page = self.opened(path)
        page.fill("#search", "layers.17 sigmoid")
        self.assertEqual("2 nodes", page.inner_text("#count"))
        page.press("#search", "Enter")
        self.assertIn("layers.17/attn/q/Sigmoid", page.inner_text("#node"))
        page.click("#fold")
        self.assertEqual(0, page.locator('[aria-expanded="true"]').count())
        page.press("#search", "Enter")  # opens the block of the match
        self.assertTrue(page.is_visible('[data-node].chosen'))
        page.fill("#search", "nothing of that name")
        self.assertEqual("no node", page.inner_text("#count"))
        page.press("#search", "Escape")
        self.assertEqual("", page.inner_text("#count"))
        page.keyboard.type("/model/layers.3/mlp/Add")
        self.assertIn("layers.3/mlp/Add", page.inner_text("#node"))  # the only match
        self.assertEqual([], page.problems)

    def test_every_node_of_check_is_in_the_page(self):
        branching = self.folder / "branching.onnx"
        branching.write_bytes(branches().SerializeToString())
        for source in (EXPORTED / "mobilevit_dynamo.onnx", EXPORTED / "gpt2_past_torchscript.onnx", branching):
            with self.subTest(source.name):
                self.compare_with_check(source)

    def compare_with_check(self, source):
        path, data = self.report(source, name="ids")
        checked = json.loads(anemone("check", source, "--json").stdout)["models"][0]["targets"][0]
        self.assertLessEqual({node["id"] for node in checked["nodes"]}, set(data["nodes"]["id"]))
        at = {id: i for i, id in enumerate(data["nodes"]["id"])}
        entries = data["targets"][0]["entries"]
        for node in checked["nodes"]:
            entry = entries["of"][at[node["id"]]]
            self.assertEqual(at[node["id"]], entries["shown"][entry], node["id"])
            self.assertEqual(node["placement"], ["engine", "cpu", "folded"][entries["place"][entry]])
            self.assertEqual(node["segment"], None if entries["segment"][entry] < 0 else entries["segment"][entry])
            self.assertEqual(node["cost"] and node["cost"]["us"], entries["us"][entry])

    def test_bodies_are_blocks(self):
        path, data = self.report(branches(), name="bodies")
        page = self.opened(path)
        self.assertEqual([0, 0], data["nodes"]["owners"])
        for id in ("/#0", "/then_branch:If_0/#0", "/else_branch:If_0/#1"):
            page.click(f'[data-node="{id}"]')
            self.assertIn(id, page.inner_text("#node"))
        self.assertEqual(2, page.locator("text=body of choice").count())
        self.assertEqual([], page.problems)

    def test_zooming_out_shows_all(self):
        path, _ = self.report(deep(40), name="far")
        page = self.opened(path)
        for _ in range(30):
            page.click("#zoom-out")
        self.assertEqual(400, page.locator("[data-node]").count())
        box = page.locator("#graph").bounding_box()
        for id in ("/#0", "/#399"):
            node = page.locator(f'[data-node="{id}"]').bounding_box()
            self.assertTrue(box["y"] < node["y"] < box["y"] + box["height"], (id, node, box))

    def test_the_treemap_opens_folders(self):
        path, _ = self.report(deep(12), name="map")
        page = self.opened(path)
        page.click("#measures button:has-text('values')")
        self.assertGreater(page.locator("#treemap button").count(), 3)
        page.click("#treemap button >> nth=0")
        self.assertIn("layers.", page.inner_text("#crumbs"))
        page.click("#measures button:has-text('constants')")
        self.assertIn("No node has constants", page.inner_text("#treemap"))
        self.assertEqual([], page.problems)

    def test_names_are_data(self):
        names = [HOSTILE, "http://example.com/" + "x" * 10_000_000, "\u05d0\u05d1 https://example.com/y"]
        hostile = chain("Relu", "Bernoulli", "Sigmoid", names=names)
        hostile.opset_import.append(helper.make_opsetid("<b>", 1))
        path, _ = self.report(hostile, "--target", "m1,m4", name="hostile")
        html = path.read_text()
        self.assertLess(len(html), 400_000)
        self.assertNotIn("<img", html)
        self.assertEqual([], re.findall(r"https?://", html))
        self.assertEqual([], re.findall(r"""(?:src|href|action|url)\s*[=(]\s*["']?(?!#|data:)[\w/.]""", html[:html.index("<script")]))
        page = self.opened(path)
        for id in ("/#0", "/#1", "/#2"):
            page.click(f'[data-node="{id}"]')
        page.click('[data-node="/#0"]')
        self.assertIn("<img src=x onerror=alert(1)>", page.inner_text("#node"))
        self.assertIn("\\u202e\\u2066\\u0007", page.inner_text("#node"))
        self.assertEqual(0, page.locator("img").count())
        self.assertNotIn("\u202e", page.inner_text("body"))
        self.assertEqual(0, driver.overflow(page))
        self.assertEqual([], page.problems)

    def test_it_fits_its_window(self):
        for name, source in (("gpt2", EXPORTED / "gpt2_ort.onnx"), ("dims", EXPORTED / "llama_past_dynamo.onnx")):
            path, _ = self.report(source, "--target", "m1,m2,m4,a15", name=name)
            for width in (400, 1600):
                for dark in (False, True):
                    page = self.opened(path, width=width, dark=dark)
                    self.assertEqual(0, driver.overflow(page), (name, width))
                    self.assertEqual([], page.problems)
                    share = page.locator('#targets td[data-label="MACs on the engine"]').first
                    self.assertLess(share.bounding_box()["height"], 50)  # its bar and number are one line

    def test_buckets_are_side_by_side(self):
        path, _ = self.report(relu(("batch", 4)), "--bucket", "batch=1,8", name="buckets")
        page = self.opened(path)
        self.assertEqual(["M1 at batch=1", "M1 at batch=8"], page.locator("#picker button").all_inner_texts())
        page.click("#picker button >> nth=1")
        page.click('[data-node="/#0"]')
        self.assertIn("M1 at batch=8", page.inner_text("#node"))
        self.assertEqual([], page.problems)

    def test_free_dimensions_are_told_first(self):
        path, _ = self.report(relu(("batch", 4)), name="free")
        page = self.opened(path)
        self.assertIn("batch", page.inner_text("#free"))
        self.assertIn("--dim batch=1", page.inner_text("#free"))

    def test_empty_models(self):
        for what in (chain("Relu"), model([], [tensor("x", SHAPE)], [tensor("x", SHAPE)])):
            path, _ = self.report(what, name="empty")
            page = self.opened(path)
            self.assertIn("Nothing", page.inner_text("#advice"))
            self.assertEqual([], page.problems)

    def test_ten_thousand_nodes(self):
        path, data = self.report(deep(1000), "--target", "m1", name="large")
        self.assertGreaterEqual(len(data["nodes"]["id"]), 10_000)
        page = self.opened(path)
        ready = page.evaluate("performance.now()")
        page.wait_for_selector("[data-node]")
        opening = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        frames = page.evaluate("""async () => {
            const box = document.querySelector("#graph"), {left, top} = box.getBoundingClientRect();
            const send = (type, x, y) => box.dispatchEvent(new PointerEvent(type,
                {pointerId: 1, isPrimary: true, button: 0, clientX: left + x, clientY: top + y, bubbles: true}));
            box.setPointerCapture = box.hasPointerCapture = () => true;
            const times = [];
            send("pointerdown", 300, 500);
            for (let i = 1; i <= 120; ++i) {
                send("pointermove", 300 + 20 * Math.sin(i / 9), 500 - 40 * i);
                await new Promise(requestAnimationFrame);
                times.push(performance.now());
            }
            send("pointerup", 300, 0);
            return times.slice(1).map((time, i) => time - times[i]);
        }""")
        rate = 1000 * len(frames) / sum(frames)
        print(f"10,000 nodes: open after {opening / 1000:.2f} s (asked at {ready / 1000:.2f} s), "
              f"{rate:.0f} frames a second while panning, the longest {max(frames):.0f} ms", flush=True)
        strip = page.locator("#strip").bounding_box()
        page.mouse.click(strip["x"] + 5, strip["y"] + 0.5 * strip["height"])
        page.wait_for_selector('[data-node="/#5000"]')
        page.fill("#search", "/model/layers.777/mlp/Mul")
        page.press("#search", "Enter")
        self.assertTrue(page.is_visible('[data-node="/#7778"]'))
        self.assertEqual([], page.problems)

    def test_a_hundred_thousand_nodes_open_as_blocks(self):
        path, data = self.report(deep(10_000), "--target", "m1", name="huge")
        self.assertGreaterEqual(len(data["nodes"]["id"]), 100_000)
        page = self.opened(path)
        print(f"100,000 nodes: open after {page.evaluate('performance.now()') / 1000:.2f} s, "
              f"{path.stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertEqual(0, page.locator("[data-node]").count())
        self.assertGreater(page.locator('[aria-expanded="false"]').count(), 3)
        page.locator('[aria-expanded="false"]').first.click()
        self.assertGreater(page.locator("[data-node]").count(), 10)
        page.fill("#search", "layers.9876/mlp/Mul")
        page.press("#search", "Enter")
        self.assertIn("layers.9876/mlp/Mul", page.inner_text("#node"))
        self.assertTrue(page.is_visible('[data-node].chosen'))
        self.assertEqual([], page.problems)

    @unittest.skipUnless(PICTURES, "pictures are made with --pictures")
    def test_pictures(self):
        path, _ = self.report(EXPORTED / "bert_eager_ort_transformers.onnx", "--target", "a11,m1,m4", name="bert")
        images = ROOT / "docs" / "images"
        for width, height, dark in ((1600, 1000, False), (400, 860, False), (400, 860, True)):
            page = self.opened(path, width=width, height=height, dark=dark)
            driver.picture(page, images / f"report-{width}{'-dark' if dark else ''}.webp")
        page = self.opened(path)
        page.click("#advice button.link")
        page.evaluate("document.querySelector('#tools').scrollIntoView()")
        driver.picture(page, images / "report-graph.webp")


class ReportCommand(unittest.TestCase):
    def test_all_changes_together_give_the_plan_without_a_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder, "net.html")
            for name, unit in (("gpt2_ort", "Reshape"), ("whisper_decoder_torchscript", "ElementWise"), ("swin_dynamo", "Transpose")):
                path = EXPORTED / f"{name}.onnx"
                whole = json.loads(anemone("check", path, "--json").stdout)["models"][0]["targets"][0]["summary"]
                anemone("report", path, "-o", output, "--policy", f"refuse:{unit}")
                target = data_of(output.read_text())["targets"][0]
                self.assertGreater(target["summary"]["engine_segments"], whole["engine_segments"], name)
                self.assertEqual(whole["engine_segments"], target["advice"]["all"]["segments"], name)
                moved = sum(item["gain"]["nodes"] for item in target["advice"]["items"])
                self.assertEqual(target["advice"]["all"]["nodes"], moved)
                self.assertEqual(target["summary"]["cpu_nodes"], moved)

    def test_json(self):
        with tempfile.TemporaryDirectory() as folder:
            path, output = pathlib.Path(folder, "net.onnx"), pathlib.Path(folder, "net.html")
            path.write_bytes(chain("Relu").SerializeToString())
            done = anemone("report", path, "-o", output, "--json")
            document = json.loads(done.stdout)
            jsonschema.validate(document, json.loads((ROOT / "docs" / "schemas" / "report.json").read_text()))
            self.assertEqual((output.stat().st_size, str(output)), (document["bytes"], document["output"]))

    def test_wrong_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "net.onnx")
            path.write_bytes(chain("Relu").SerializeToString())
            before = path.read_bytes()
            for words, code, said in [([path], 2, "--output"), ([path, "-o", path], 1, "net.onnx"),
                                      ([path, "-o", f"{folder}/none/x.html"], 1, "none"),
                                      ([f"{folder}/missing.onnx", "-o", f"{folder}/x.html"], 1, "missing.onnx"),
                                      ([path, "-o", f"{folder}/x.html", "--target", "x1"], 2, "x1")]:
                done = anemone("report", *words)
                self.assertEqual(code, done.returncode, (words, done.stderr))
                self.assertIn(said, done.stderr)
            self.assertEqual(before, path.read_bytes())
            self.assertEqual(["net.onnx"], [found.name for found in pathlib.Path(folder).iterdir()])


if __name__ == "__main__":
    unittest.main()
