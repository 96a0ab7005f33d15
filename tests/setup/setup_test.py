"""Parts of the set-up scripts where a mistake would not be noticed: which apt entries are copied, the
output of a step that fails, and that the cache folder never has an incomplete result."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools" / "setup"

ONE_LINE = """\
deb cdrom:[Debian 12]/ oldstable main
# deb mirror://commented oldstable main
deb mirror://updates oldstable-updates main
deb mirror://vendor oldstable stable
deb [ arch=amd64 signed-by=/k.gpg ]  mirror://debian  oldstable main contrib
deb mirror://second oldstable main
"""
STANZAS = """\
Types: deb
URIs: mirror://vendor
Suites: oldstable
Components: stable

Types: deb deb-src
# a comment
URIs: mirror://debian
Suites: oldstable oldstable-updates
Components: main contrib
Signed-By: /k.gpg

Types: deb
URIs: mirror://security
Suites: oldstable-security
Components: main
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(SETUP, self.root / "tools" / "setup")
        self.environment = {**os.environ, "ANEMONE_CACHE_DIR": str(self.root / "cache")}

    def start(self, script):
        """Starts a script that has sourced steps.sh and apt.sh, in a new process group."""
        sources = "; ".join(
            f"source '{self.root}/tools/setup/{name}.sh'" for name in ("steps", "apt")
        )
        return subprocess.Popen(
            ["bash", "-c", f"{sources}\n{script}"],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run_script(self, script):
        process = self.start(script)
        return process.communicate()[0], process.returncode

    def entries(self, folder, name, text):
        etc = self.root / "etc"
        (etc / folder).mkdir(parents=True)
        (etc / folder / name).write_text(text)
        out = self.root / "out"
        out.mkdir()
        printed, status = self.run_script(f"apt_entries deb-src forky '{out}' '{etc}'")
        self.assertEqual((printed, status), ("", 0))
        return "".join(path.read_text() for path in out.iterdir())

    def test_one_line_entry_of_debian_itself(self):
        self.assertEqual(
            self.entries(".", "sources.list", ONE_LINE),
            "deb-src [ arch=amd64 signed-by=/k.gpg ] mirror://debian forky main contrib\n",
        )

    def test_stanza_of_debian_itself(self):
        self.assertEqual(
            self.entries("sources.list.d", "debian.sources", STANZAS),
            "Types: deb-src\n# a comment\nURIs: mirror://debian\nSuites: forky\n"
            "Components: main contrib\nSigned-By: /k.gpg\n",
        )

    def test_disabled_stanza(self):
        self.assertEqual(
            self.entries(
                "sources.list.d",
                "debian.sources",
                "Enabled: no\nTypes: deb\nSuites: oldstable\nComponents: main\n",
            ),
            "",
        )

    def test_failed_step_shows_its_log_and_its_exit_code(self):
        printed, status = self.run_script(
            "begin try 2; step 'A, b' bash -c 'echo \"note: fine\"'\n"
            "step Worse bash -c 'echo reason; exit 7'"
        )
        self.assertEqual(status, 7)
        self.assertRegex(printed, r"\[1/2\] A, b +ok +0\.\d s  fine")
        self.assertRegex(printed, r"\[2/2\] Worse +FAILED after 0\.\d s, exit code 7")
        self.assertIn("\n    reason\n", printed)
        self.assertEqual((self.root / "build/logs/try/02-Worse.log").read_text(), "reason\n")

    def test_cache_holds_whole_results_only(self):
        make = 'in_cache "$cache/thing" thing; mkdir "$work/result"; echo 1 >"$work/result/one"; '
        killed = self.start(make + "echo half; sleep 60")
        self.assertEqual(killed.stdout.readline(), "half\n")
        waiting = self.start(make + "into_cache made")
        self.assertRegex(
            waiting.stdout.readline(), "^waiting for another run, which holds .*thing.lock$"
        )
        self.assertFalse((self.root / "cache/thing").exists())
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        self.assertEqual(waiting.communicate()[0], "note: made\n")
        self.assertEqual((self.root / "cache/thing/one").read_text(), "1\n")
        self.assertFalse((self.root / "cache/thing.partial").exists())
        self.assertEqual(self.run_script(make + "echo again"), ("note: thing, in the cache\n", 0))

    def test_failure_leaves_nothing_in_the_cache(self):
        _, status = self.run_script('in_cache "$cache/thing" thing; mkdir "$work/result"; false')
        self.assertEqual(status, 1)
        self.assertEqual(
            sorted(path.name for path in (self.root / "cache").iterdir()), ["thing.lock"]
        )


if __name__ == "__main__":
    unittest.main()
