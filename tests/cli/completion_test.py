"""The completion scripts, in the shells themselves. A shell that is not installed is skipped."""

import os
import pty
import select
import shutil
import subprocess
import time
import unittest

from support import ANEMONE, CliTest, anemone

# What is typed after `anemone`, and what must be offered or must not be.
CASES = (
    ("che", ["check"], []),
    ("check --tar", ["--target"], []),
    ("check --target m", ["m1", "m1-pro", "m4", "m9"], ["h13"]),
    ("check --target m1,m", ["m1,m4", "m1,m2-pro"], ["m4"]),
    ("check --target h13,a", ["h13,a15"], ["h13,m1"]),
    ("check --route ", ["netplist", "mil"], []),
    ("check --policy ", ["max-engine", "latency", "fewest-segments", "cpu", "refuse:Pooling"], ["Pooling"]),
    ("check --policy refuse:Po", ["refuse:Pooling"], ["refuse:Softmax", "cpu"]),
    ("check --policy refuse:Pooling,Softm", ["refuse:Pooling,Softmax"], ["refuse:Pooling,max-engine"]),
    ("run --target m1", ["m1", "m1-pro"], ["all"]),
    ("run --target m1,m", [], ["m1,m4"]),
    ("run --tolerance ", ["cosine=", "max_abs=", "max_rel="], []),
    ("confirm sof", ["softmax"], ["check"]),
    ("confirm Sof", ["Softmax"], ["softmax"]),
    ("confirm --expect ", ["native", "rewritten", "rejected"], []),
    ("units Soft", ["Softmax"], []),
    ("units Softmax Pool", ["Pooling"], []),
    ("completion ", ["bash", "zsh", "fish"], ["model.onnx"]),
    ("help con", ["confirm", "convert"], []),
    ("check mod", ["model.onnx"], []),
    ("run model.onnx --seed ", [], ["model.onnx"]),
    ("compile model.onnx -o mod", ["model.onnx"], []),
    ("targets ", [], ["model.onnx"]),
)


class Completion(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "model.onnx").write_bytes(b"")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.bin / "anemone").symlink_to(ANEMONE)

    def shell(self, name):
        found = shutil.which(name)
        if found is None:
            self.skipTest(f"{name} is not installed")
        script = self.folder / f"completion.{name}"
        done = anemone("completion", name)
        self.assertEqual(0, done.returncode, done.stderr)
        script.write_text(done.stdout)
        return found, script

    def expect_offers(self, offers):
        for typed, wanted, unwanted in CASES:
            with self.subTest(typed):
                offered = offers(typed)
                for word in wanted:
                    self.assertIn(word, offered)
                for word in unwanted:
                    self.assertNotIn(word, offered)

    def output(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60,
                              cwd=self.folder, env={**os.environ, "HOME": str(self.folder)})
        self.assertEqual("", done.stderr)
        return done.stdout

    def test_bash(self):
        bash, script = self.shell("bash")

        def offers(typed, extra=""):
            words = typed.split(" ")
            return self.output(
                bash, "--norc", "-c",
                f'source "$0"; COMP_WORDS=(anemone "$@") COMP_CWORD=$#; _anemone; '
                f'printf "%s\\n" "${{COMPREPLY[@]}}"', script, *words).splitlines()

        self.expect_offers(offers)
        self.assertEqual(["m1-pro"], offers("check --target = m1-p"))  # as bash splits --target=m1-p
        self.assertEqual(["model.onnx"], offers("run --input x = mod"))
        # As bash splits at colons; only what follows them is replaced.
        self.assertEqual(["Pooling"], offers("check --policy refuse : Pooling"))
        self.assertEqual(["Pooling,Softmax"], offers("check --policy = refuse : Pooling,Softm"))
        self.assertIn("Pooling", offers("check --policy refuse :"))
        self.assertEqual(["bash", "fish", "zsh"], sorted(offers("completion ")))

    def test_fish(self):
        fish, script = self.shell("fish")

        def offers(typed):
            text = self.output(fish, "--no-config", "-c",
                               f"source {script}; complete -C 'anemone {typed}'")
            return [line.split("\t")[0] for line in text.splitlines()]

        self.expect_offers(offers)
        self.assertIn("--target=m1,m4", offers("check --target=m1,m"))

    def test_zsh(self):
        """Zsh completes only at a terminal: a line is typed there, and what compadd is given is printed."""
        zsh, script = self.shell("zsh")
        setup = self.folder / "setup.zsh"
        setup.write_text(f"""
            PS1='' PS2='' PROMPT_EOL_MARK=''
            autoload -Uz compinit && compinit -u -d {self.folder}/zcompdump
            source {script}
            zstyle ':completion:*' completer _complete
            compadd() {{  # keeps the matches
              if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
              typeset -a hits
              builtin compadd -A hits "$@"
              for hit in $hits; do print -r -- "$IPREFIX$hit" >>{self.folder}/offered; done
              builtin compadd "$@"
            }}
            done-completing() {{ print end >>{self.folder}/offered; BUFFER='' }}
            zle -N done-completing
            bindkey '^X^E' done-completing
            bindkey '^I' complete-word
            print ready >>{self.folder}/offered
            """)
        offered = self.folder / "offered"
        leader, follower = pty.openpty()
        process = subprocess.Popen([zsh, "-f", "-i"], stdin=follower, stdout=follower, stderr=follower,
                                   cwd=self.folder, close_fds=True, start_new_session=True,
                                   env={**os.environ, "TERM": "dumb", "HOME": str(self.folder),
                                        "LISTMAX": "10000", "COLUMNS": "200"})
        os.close(follower)

        def wait_for(mark):
            for _ in range(600):
                while select.select([leader], [], [], 0)[0]:
                    os.read(leader, 65536)
                if offered.exists() and mark in offered.read_text().splitlines():
                    return offered.read_text().splitlines()
                time.sleep(0.05)
            self.fail(f"zsh does not answer: {offered.read_text() if offered.exists() else ''}")

        def offers(typed):
            offered.write_text("")
            os.write(leader, f"anemone {typed}\t".encode() + b"\x18\x05")
            return wait_for("end")

        try:
            os.write(leader, f"source {setup}\n".encode())
            wait_for("ready")
            self.expect_offers(offers)
        finally:
            process.kill()
            process.wait()
            os.close(leader)


if __name__ == "__main__":
    unittest.main()
