"""Makes the pictures of README.md: `anemone check` in a terminal, and its page in a notebook.

    PYTHONPATH=build/release/python python3 tools/pictures/pictures.py build/release/anemone

Needs Chromium (Debian: chromium) and Pillow.
"""

import html
import os
import pathlib
import subprocess
import sys
import tempfile

import onnxruntime_ep_ane as ane
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
EXPORTED = ROOT / "models" / "exported"

TERMINAL = """<body style="margin: 0; background: #1e2127"><pre style="margin: 0; padding: 14px 18px;
color: #d7dae0; font: 14px/1.45 'DejaVu Sans Mono', monospace">{}</pre></body>"""
NOTEBOOK = """<body style="margin: 0; padding: 12px 18px; background: white; color: #222;
font: 14px 'DejaVu Sans', sans-serif">
<pre style="margin: 0 0 10px; padding: 8px 10px; background: #f5f5f5; border: 1px solid #ddd;
font: 13px 'DejaVu Sans Mono', monospace">{}</pre>{}</body>"""


def terminal(anemone, commands):
    """What the commands print, each after its prompt."""
    text = ""
    for command in commands:
        done = subprocess.run([anemone, *command.split()], cwd=EXPORTED, capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": "80"}, check=True)
        text += f'<b style="color: #98c379">$ anemone {html.escape(command)}</b>\n'
        text += html.escape(done.stdout) + "\n"
    return TERMINAL.format(text.rstrip())


def notebook(code):
    """The page of an expression that makes a report."""
    report = eval(code, {"ane": ane})
    page = report._repr_html_().replace("<details", "<details open", 1)
    return NOTEBOOK.format(html.escape(code), page)


def picture(page, name, width, height):
    """Of a page, with the empty rows at its end cut off, in 64 colours."""
    with tempfile.TemporaryDirectory() as folder:
        source, shot = pathlib.Path(folder) / "page.html", pathlib.Path(folder) / "page.png"
        source.write_text(f'<!doctype html><meta charset="utf-8">{page}')
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
                        f"--screenshot={shot}", source.as_uri()], check=True, capture_output=True,
                       timeout=120)
        image = Image.open(shot).convert("RGB")
    ground = image.getpixel((image.width - 1, image.height - 1))
    rows = [y for y in range(image.height)
            if image.crop((0, y, image.width, y + 1)).getcolors(1) != [(image.width, ground)]]
    image = image.crop((0, 0, image.width, min(image.height, rows[-1] + 14)))
    # Median cut would drop the colours of thin lines.
    few = image.quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(IMAGES / name, optimize=True)


def main(anemone):
    IMAGES.mkdir(exist_ok=True)
    os.chdir(EXPORTED)
    picture(terminal(anemone, ["check gpt2_ort.onnx --target m1,m4",
                               "check gpt2_ort.onnx --target m1"]), "terminal.png", 730, 1000)
    picture(notebook('ane.check("gpt2_ort.onnx", target="m1,m4")'), "notebook.png", 940, 600)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
