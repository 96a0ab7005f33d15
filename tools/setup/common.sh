# shellcheck shell=bash
# What the set-up scripts share: where things are, how progress is shown, how runs wait for each
# other. Source it; it goes to the repository's root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"

# What is slow to make is kept here, outside the clone.
cache=${ANEMONE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/anemone}
mkdir -p "$cache" build
cache=$(cd "$cache" && pwd -P)
export ANEMONE_CACHE_DIR=$cache

export VIRTUAL_ENV=$root/.venv PATH="$root/.venv/bin:$PATH"
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros # what precompiled headers ask for
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# One job per core, but no more than the memory bears: a file of ours takes up to 1.5 GB to compile.
jobs=$(awk -v cores="$(nproc)" '/^MemAvailable/ { n = int($2 / 1572864) }
                                END { print n < 1 ? 1 : n < cores ? n : cores }' /proc/meminfo)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$jobs

# pinned PACKAGE: its version in requirements.txt, the one place that names versions.
pinned() { sed -n "s/^$1==\([^ ;]*\).*/\1/p" tools/setup/requirements.txt; }

# What goes into the cache folder, and its names there. Whatever changes a result changes its name.
key() {
  { "${CXX:-c++}" --version | sed -n 1p; uname -m; echo "${CXXFLAGS:-}"; printf '%s\n' "$@"; } |
    sha256sum | cut -c -8
}

# Lite: else two libraries of one process that hold ONNX's messages and share libprotobuf, such as
# the plugin and its host, would both enter them into its list of descriptors, which ends the process.
onnx_options=(-DONNX_BUILD_PYTHON=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib -DONNX_USE_LITE_PROTO=ON
  # A third of the time to build.
  -DONNX_USE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20 "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
onnx_prefix() {
  echo "$cache/onnx-$(pinned onnx)-$(key "${onnx_options[@]}" "$(protoc --version)")"
}

# The compiler is that of CMakePresets.json.
tsan_tbb_options=(-DCMAKE_CXX_COMPILER=clang++-14 -DTBB_SANITIZE=thread -DTBB_TEST=OFF
  -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_LIBDIR=lib
  -DCMAKE_POLICY_VERSION_MINIMUM=3.5) # Debian 12's oneTBB asks for less than CMake 4 grants
tsan_tbb_prefix() {
  local version
  version=$(dpkg-query --show --showformat '${source:Upstream-Version}' libtbb-dev)
  echo "$cache/tsan-tbb-$version-$(key "${tsan_tbb_options[@]}")"
}

# The oldest ONNX Runtime that Anemone loads; its headers set what we may call.
ort_headers_version=1.23.2
ort_headers() { echo "$cache/ort-headers-$ort_headers_version"; }

# in_cache RESULT LOCK_NAME: ends the script if RESULT is there already; else makes an empty folder
# `work`, in which the caller makes `result`. An interrupted run leaves nothing that looks finished,
# and of two runs at the same time the second waits.
in_cache() {
  result=$1 work=$cache/$2.partial
  lock "$cache/$2.lock"
  if [[ -d $result ]]; then
    note "${result##*/}, in the cache"
    exit
  fi
  rm -rf "$work" # the lock is ours, so what is in there is a dead run's
  mkdir "$work"
  trap 'rm -rf "$work"' EXIT
}

# into_cache NOTE: puts `work`/result in its place.
into_cache() {
  mv --no-target-directory "$work/result" "$result"
  note "$1"
}

# lock FILE: waits until no other run holds it; it is held until this script ends.
lock() {
  exec {lock_fd}>"$1"
  flock --nonblock "$lock_fd" && return
  echo "waiting for another run, which holds $1"
  flock "$lock_fd"
}

# note TEXT...: a set-up script's result; `step` shows it beside the time.
note() { echo "note: $*"; }
