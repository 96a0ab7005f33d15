"""clang's front end for macOS on arm64 takes the sources of engine/apple. The declarations of Foundation
are those of tests/apple/foundation, and the standard library is that of this machine, with its macros for
x86. So this checks syntax, types and Objective-C for macOS, not Apple's own headers.

    syntax_test.py REPOSITORY GENERATED... [--all]

GENERATED are the folders of generated headers. Without --all, only Objective-C and Objective-C++.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
LANGUAGES = {".mm": ["-x", "objective-c++", "-std=c++20", "-fobjc-exceptions"],
             ".m": ["-x", "objective-c", "-fobjc-exceptions"], ".cc": ["-x", "c++", "-std=c++20"]}


def system_folders():
    """The folders in which this machine's compiler finds its headers, except clang's own."""
    told = subprocess.run(["clang++-14", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True).stderr
    found = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search", told, re.DOTALL).group(1)
    return [line.strip() for line in found.splitlines() if "/lib/clang/" not in line
            and "/llvm-14/lib/" not in line]


def main():
    if shutil.which("clang++-14") is None:
        print("skipped: no clang++-14")
        return 0
    suffixes = {".mm", ".m", ".cc"} if "--all" in sys.argv else {".mm", ".m"}
    flags = ["-fsyntax-only", "-target", "arm64-apple-macos13", "-Wall", "-Wextra", "-Werror",
             "-Wno-sign-compare", "-Wno-missing-field-initializers", "-nostdinc++", "-nostdlibinc",
             # For the headers of glibc and libstdc++.
             "-D__x86_64__", "-U__nonnull", "-D_GNU_SOURCE", "-D__builtin_ia32_pause()=((void)0)",
             "-isystem", str(ROOT / "tests/apple/foundation")]
    for folder in system_folders():
        flags += ["-isystem", folder]
    for folder in [ROOT, ROOT / "include", *(word for word in sys.argv[2:] if word != "--all")]:
        flags += ["-I", str(folder)]
    failed = 0
    sources = sorted(path for path in (ROOT / "engine" / "apple").iterdir() if path.suffix in suffixes)
    for path in sources:
        done = subprocess.run(["clang++-14", *LANGUAGES[path.suffix], *flags, str(path)],
                              capture_output=True, text=True)
        print(f"{path.name:24} {'ok' if done.returncode == 0 else done.stderr[-3000:]}", flush=True)
        failed += done.returncode != 0
    print(f"{len(sources)} sources, {failed} failures")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
