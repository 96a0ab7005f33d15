"""The worked examples of docs/adding.md: patches in docs/adding that add a unit, an operator, an option,
a target and a data table.

adding_test.py pages REPOSITORY
    Every patch applies to the sources as they are, and the page states how many files it touches and
    names each.
adding_test.py sample|all REPOSITORY BUILD
    Builds a patched copy and runs the example's check (examples.py): one example, chosen by the hash of
    HEAD, or all of them.

A copy of the sources and a copy of the build folder are mounted over the originals, in a mount
namespace that only this test sees. All paths are then those of the original build, so only the files
that the patch changes are compiled. Where the system does not allow such a namespace (in many
containers), the test is skipped (exit code 77).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SKIPPED = 77


def git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)


def patches_of(root):
    return sorted((root / "docs" / "adding").glob("*.patch"))


def files_of(patch):
    """The files that a patch changes or adds."""
    return re.findall(r"^\+\+\+ b/(.*)$", patch.read_text(), re.MULTILINE)


# --- pages


def stated_counts(root):
    """What the page's table says: the name of a patch -> the number of files."""
    page = (root / "docs" / "adding.md").read_text()
    rows = re.findall(r"^\|.*\(adding/(\w+)\.patch\) \| (\d+) \|", page, re.MULTILINE)
    return {name: int(count) for name, count in rows}


def check_pages(root):
    problems = []
    patches = patches_of(root)
    page = (root / "docs" / "adding.md").read_text()
    for patch in patches:
        applied = git(root, "apply", "--check", str(patch))
        if applied.returncode != 0:
            problems.append(f"{patch.name} does not apply; write it again, as docs/adding.md says:\n"
                            f"{applied.stderr}")
        problems += [f"docs/adding.md does not say why {patch.name} touches {file}"
                     for file in files_of(patch) if f"`{file}`" not in page]
    counted = {patch.stem: len(files_of(patch)) for patch in patches}
    if counted != stated_counts(root):
        problems.append(f"docs/adding.md states {stated_counts(root)} files, the patches touch "
                        f"{counted}")
    if len(patches) != 5:
        problems.append(f"want 5 patches in docs/adding, found {len(patches)}")
    for name, count in counted.items():
        print(f"{name}: {count} files")
    print(*problems, sep="\n")
    return 1 if problems else 0


# --- sample, all


def namespace_command():
    """The command that runs another one in a mount namespace, or None."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            probe = subprocess.run([*command, "mount", "--bind", "/tmp", "/mnt"],
                                   capture_output=True)
        except FileNotFoundError:
            return None
        if probe.returncode == 0:
            return command
    return None


def copy_sources(root, to):
    """The files that git knows, with their times: an object is older than its source if it changed."""
    listed = git(root, "ls-files", "-z")
    if listed.returncode != 0:
        sys.exit(f"git ls-files: {listed.stderr}")
    for name in listed.stdout.split("\0") + ["build/setup.cmake"]:
        source = root / name
        if not name or not source.is_file():
            continue  # deleted, but not yet in the index
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, to / name, follow_symlinks=False)
    (to / ".venv").mkdir()


def copy_build(build, to):
    """cp -a keeps the times; --reflink saves the space where the file system can."""
    to.mkdir()
    entries = [str(entry) for entry in build.iterdir() if entry.name != "adding"]
    subprocess.run(["cp", "-a", "--reflink=auto", *entries, str(to)], check=True)


# The copies are in the build folder, and that is below the root: so it is mounted first, into the copy of
# the sources, and the copy over the root with all that is mounted in it.
MOUNT_AND_RUN = """
name=$1 root=$2 build=$3 sources=$4 objects=$5 python=$6
inner=$sources/${build#"$root"/}
mkdir -p "$inner"
mount --bind "$objects" "$inner"
if [[ -d $root/.venv ]]; then
  mount --bind "$root/.venv" "$sources/.venv"
fi
mount --rbind "$sources" "$root"
cd "$root"
exec "$python" tests/adding/examples.py "$name" "$root" "$build"
"""


def run_example(name, root, build, namespace):
    """0 if the patched copy builds and its check passes."""
    start = time.monotonic()
    work = build / "adding"
    shutil.rmtree(work, ignore_errors=True)
    sources, objects = work / "sources", work / "build"
    sources.mkdir(parents=True)
    try:
        copy_sources(root, sources)
        copy_build(build, objects)
        patch = root / "docs" / "adding" / f"{name}.patch"
        # Git must not take the copy for a part of the repository around it, or it skips the patch.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(work)}
        subprocess.run(["git", "apply", str(patch)], cwd=sources, check=True, env=environment)
        print(f"{name}: copied in {time.monotonic() - start:.0f} s", flush=True)
        done = subprocess.run([*namespace, "bash", "-euc", MOUNT_AND_RUN, "adding", name, root, build,
                               sources, objects, sys.executable])
        print(f"{name}: {'passed' if done.returncode == 0 else 'FAILED'} in "
              f"{time.monotonic() - start:.0f} s", flush=True)
        return done.returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    mode, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if mode == "pages":
        return check_pages(root)
    build = pathlib.Path(sys.argv[3]).resolve()
    if not build.is_relative_to(root):
        print("skipped: the build folder is not below the repository")
        return SKIPPED
    namespace = namespace_command()
    if namespace is None:
        print("skipped: this system does not let a test have a mount namespace of its own")
        return SKIPPED
    names = [patch.stem for patch in patches_of(root)]
    if mode == "sample":
        head = git(root, "rev-parse", "HEAD").stdout.strip() or "0"
        names = [names[int(head, 16) % len(names)]]
        print(f"HEAD is {head[:12]}: the example is {names[0]}", flush=True)
    return max(run_example(name, root, build, namespace) for name in names)


if __name__ == "__main__":
    sys.exit(main())
