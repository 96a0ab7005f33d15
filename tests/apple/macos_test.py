"""The preset `macos` on this machine, as far as that goes without Apple's headers and libraries:

- CMake configures for macOS with the preset's values (macos_on_linux.cmake). The commands that it makes name
  Foundation, and nothing of GNU's linker or of GNUstep.
- clang's front end for macOS on arm64 takes the sources with these commands. The declarations of Foundation are
  those of tests/apple/foundation; the C and C++ libraries are those of this machine, with their macros for
  x86. So this checks syntax, types and Objective-C for macOS, and that no function of Linux is called
  (not_on_macos.h), not Apple's own headers.

    macos_test.py CMAKE SOURCE_FOLDER BINARY_FOLDER [--all]

Generated headers are those of BINARY_FOLDER. Without --all, clang reads only Objective-C and Objective-C++.
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

CMAKE, ROOT, BINARY = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
HERE = ROOT / "tests" / "apple"
ALL = "--all" in sys.argv
OF_GNU = ("GNUSTEP", "gnustep-base", "-fconstant-string-class", "--version-script", "nodelete")
FOLDERS = ("base", "engine")  # whose sources --all reads


def values_of_preset():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    values = next(preset for preset in presets if preset["name"] == "macos")["cacheVariables"]
    return {key: value for key, value in values.items() if key not in ("CMAKE_CXX_COMPILER", "CMAKE_PREFIX_PATH")}


def configure(folder):
    """The commands that compile each source, and the rules of the build."""
    options = [f"-D{key}={value}" for key, value in values_of_preset().items()]
    done = subprocess.run([CMAKE, "-S", ROOT, "-B", folder, "-G", "Ninja", *options,
                           f"-DCMAKE_TOOLCHAIN_FILE={HERE / 'macos_on_linux.cmake'}",
                           "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DCMAKE_UNITY_BUILD=OFF", "-DANEMONE_BUILD_PYTHON=OFF",
                           "-DANEMONE_BUILD_BENCH=OFF"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"CMake fails:\n{done.stdout}{done.stderr}")
    commands = json.loads((folder / "compile_commands.json").read_text())
    return commands, (folder / "build.ninja").read_text()


def check_rules(rules):
    """What is wrong with the rules, as texts."""
    wrong = [f"the build has {word}" for word in OF_GNU if word in rules]
    for word in ("-framework Foundation", "-exported_symbol,_CreateEpFactories", "driver.mm.o", "try.m.o"):
        if word not in rules:
            wrong.append(f"the build does not have {word}")
    return wrong


def system_folders():
    """The folders in which this machine's compiler finds its headers, except clang's own."""
    told = subprocess.run(["clang++-14", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True).stderr
    found = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search", told, re.DOTALL).group(1)
    return [line.strip() for line in found.splitlines() if "/lib/clang/" not in line
            and "/llvm-14/lib/" not in line]


def front_end(command, folder):
    """The command for the front end alone, with the headers of this machine."""
    words = shlex.split(command.replace(str(folder), BINARY).replace("-isystem /usr/include ", ""))
    words = [word for at, word in enumerate(words) if word not in ("-c", "-o") and words[at - 1] != "-o"]
    more = ["-fsyntax-only", "-nostdinc++", "-nostdlibinc", "-Wno-unused-command-line-argument",
            # For the headers of glibc and libstdc++.
            "-D__x86_64__", "-U__nonnull", "-Dst_mtimespec=st_mtim", "-D_GNU_SOURCE", "-D__builtin_ia32_pause()=((void)0)",
            "-U_FORTIFY_SOURCE",
            "-isystem", str(HERE / "foundation"), "-include", str(HERE / "foundation" / "not_on_macos.h")]
    for path in system_folders():
        more += ["-isystem", path]
    return [*words, *more]


def is_read(path):
    if path.suffix in (".mm", ".m"):
        return ROOT / "engine" in path.parents
    return ALL and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS


def main():
    if shutil.which("clang++-14") is None:
        print("skipped: no clang++-14")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        commands, rules = configure(folder)
        failures = check_rules(rules)
        print(*failures, sep="\n")
        read = sorted((c for c in commands if is_read(pathlib.Path(c["file"]))), key=lambda c: c["file"])
        for command in read:
            done = subprocess.run(front_end(command["command"], folder), capture_output=True, text=True, cwd=folder)
            if done.returncode != 0:
                failures.append(command["file"])
                print(f"{command['file']}:\n{done.stderr[-3000:]}", flush=True)
    print(f"{len(read)} sources, {len(failures)} failures")
    return 1 if failures or not read else 0


if __name__ == "__main__":
    sys.exit(main())
