# shellcheck shell=bash
# Shared by the set-up scripts: paths, cache, locks and notes. Source it; it changes to the repository's
# root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"

# Dependencies that are slow to build are kept here, outside the clone.
cache=${ANEMONE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/anemone}
mkdir -p "$cache" build
cache=$(cd "$cache" && pwd -P)
export ANEMONE_CACHE_DIR=$cache

export VIRTUAL_ENV=$root/.venv PATH="$root/.venv/bin:$PATH"
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros # required for precompiled headers
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# One job per core, limited by memory: compiling one file takes up to 1.5 GB.
jobs=$(awk -v cores="$(nproc)" '/^MemAvailable/ { n = int($2 / 1572864) }
                                END { print n < 1 ? 1 : n < cores ? n : cores }' /proc/meminfo)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$((jobs + 1))  # some tests wait

# pinned PACKAGE: its version in requirements.txt, the only file with versions.
pinned() { sed -n "s/^$1==\([^ ;]*\).*/\1/p" tools/setup/requirements.txt; }

# key INPUT...: a hash for names in the cache folder. Everything that changes a result must be an input.
key() {
  { "${CXX:-c++}" --version | sed -n 1p; uname -m; echo "${CXXFLAGS:-}"; printf '%s\n' "$@"; } |
    sha256sum | cut -c -8
}

# Lite protobuf: otherwise two libraries in one process that contain ONNX's messages and share
# libprotobuf, such as the plugin and its host, would both register the messages' descriptors, which
# aborts the process.
onnx_options=(-DONNX_BUILD_PYTHON=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib -DONNX_USE_LITE_PROTO=ON
  # This takes a third of the time to build.
  -DONNX_USE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20 "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
# The library is hardened like our own code: the same file of flags, by CMAKE_PROJECT_INCLUDE.
onnx_key() { key "${onnx_options[@]}" "$(<cmake/AnemoneHardened.cmake)" "$(protoc --version)" "$@"; }
onnx_prefix() { echo "$cache/onnx-$(pinned onnx)-$(onnx_key)"; }

# The compiler is the one in CMakePresets.json.
tsan_tbb_options=(-DCMAKE_CXX_COMPILER=clang++-14 -DTBB_SANITIZE=thread -DTBB_TEST=OFF
  -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_LIBDIR=lib
  -DCMAKE_POLICY_VERSION_MINIMUM=3.5) # Debian 12's oneTBB requires a version that CMake 4 no longer supports
tsan_tbb_prefix() {
  local version
  version=$(dpkg-query --show --showformat '${source:Upstream-Version}' libtbb-dev)
  echo "$cache/tsan-tbb-$version-$(key "${tsan_tbb_options[@]}")"
}

# The oldest ONNX Runtime that Anemone loads. Its headers define the API that we may call.
ort_headers_version=1.23.2
ort_headers() { echo "$cache/ort-headers-$ort_headers_version"; }

# For the preset arm64: Debian's packages for 64-bit Arm, unpacked, with ONNX Runtime's library; and the
# ONNX C++ library, built with them. The packages are the development packages of packages.txt.
arm64_packages() { grep --extended-regexp '^(lib|nlohmann).*-dev$' tools/setup/packages.txt; }
arm64_root() {
  echo "$cache/arm64-root-$(key "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$(arm64_packages)" \
    "$(pinned onnxruntime)")"
}
arm64_onnx_prefix() {
  echo "$cache/onnx-arm64-$(pinned onnx)-$(CXX=aarch64-linux-gnu-g++ onnx_key "$(arm64_root)")"
}

# in_cache RESULT LOCK_NAME: ends the script if RESULT exists. Otherwise makes an empty folder `work`, in
# which the caller makes `result`. An interrupted run leaves nothing that looks finished. If two runs
# need it at the same time, the second waits.
in_cache() {
  result=$1 work=$cache/$2.partial
  lock "$cache/$2.lock"
  if [[ -d $result ]]; then
    note "${result##*/}, in the cache"
    exit
  fi
  rm -rf "$work" # we hold the lock, so its content is from a dead run
  mkdir "$work"
  trap 'rm -rf "$work"' EXIT
}

# into_cache NOTE: moves `work`/result to RESULT of in_cache.
into_cache() {
  mv --no-target-directory "$work/result" "$result"
  note "$1"
}

# lock FILE: waits until no other run holds the lock. It is held until this script ends.
lock() {
  exec {lock_fd}>"$1"
  flock --nonblock "$lock_fd" && return
  echo "waiting for another run, which holds $1"
  flock "$lock_fd"
}

# note TEXT...: prints a set-up script's result; `step` shows it next to the time.
note() { echo "note: $*"; }
