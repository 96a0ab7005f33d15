"""Drives a headless Chromium through pages on disk, for tests and for the pictures in docs/.

    with driver.chromium() as browser:
        page = driver.opened(browser, pathlib.Path("report.html"), width=400, dark=True)
        page.click("#targets a")
        self.assertEqual([], page.problems)          # requests, errors and dialogs since it was opened
        driver.picture(page, pathlib.Path("docs/images/report-400.webp"))

The pages are Playwright's (https://playwright.dev/python), so its documentation holds. Chromium is
Debian's package, which tools/test installs; $ANEMONE_CHROMIUM names another one.
"""

import base64
import contextlib
import os
import shutil

# Without these, Chromium calls its maker at every start, and needs a sandbox that root does not have.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--font-render-hinting=none", "--force-color-profile=srgb")


def program():
    """The path of Chromium, or None."""
    return os.environ.get("ANEMONE_CHROMIUM") or shutil.which("chromium")


def why_not():
    """Why pages cannot be opened here; "" if they can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the Python package playwright is not installed (tools/setup/requirements.txt)"
    if program() is None:
        return "Chromium is not installed (Debian: apt-get install chromium), nor named by ANEMONE_CHROMIUM"
    return ""


@contextlib.contextmanager
def chromium():
    """A browser without windows. It ends with the block."""
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def opened(browser, path, width=1600, height=1000, dark=False, **options):
    """The page of a file, in a window of this size. `page.problems` lists what a good page never does: a
    request other than for the file itself, an error, a dialog."""
    context = browser.new_context(viewport={"width": width, "height": height},
                                  color_scheme="dark" if dark else "light",
                                  reduced_motion="reduce", **options)
    page = context.new_page()
    page.set_default_timeout(20_000)
    own = path.resolve().as_uri()
    problems = page.problems = []

    def requested(request):
        if request.url.split("#")[0] != own and not request.url.startswith("data:"):
            problems.append(f"request: {request.url}")

    def asked(dialog):
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def said(message):
        if message.type == "error":
            problems.append(f"console: {message.text}")

    page.on("request", requested)
    page.on("dialog", asked)
    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.goto(own)
    return page


def closed(page):
    """Closes the page and its window."""
    page.context.close()


def overflow(page):
    """By how many pixels the page is wider than its window: 0 if it needs no horizontal scrolling."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def picture(page, path, quality=80, whole=False):
    """Saves what the window shows (`whole`: the whole page) as PNG, or by the suffix .webp as WebP, which
    is a tenth of the size."""
    if path.suffix == ".png":
        page.screenshot(path=path, full_page=whole)
        return
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality,
                                                    "captureBeyondViewport": whole})
    path.write_bytes(base64.b64decode(taken["data"]))
