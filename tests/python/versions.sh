#!/usr/bin/env bash
# Builds the Python package for each Python and runs its tests there, with the newest NumPy, ONNX and ONNX
# Runtime that pip finds for it. Needs a release build's set-up, and the network.
#
#   versions.sh [PYTHON...]     by default all of 3.10 or later in the PATH and in pyenv
source "$(dirname "$0")/../../tools/setup/common.sh"

pythons=("$@")
if ((!$#)); then
  for minor in 10 11 12 13 14 15; do
    for python in "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python "/usr/bin/python3.$minor"; do
      [[ -x $python ]] && pythons+=("$python")
    done
  done
fi
failed=0
for python in "${pythons[@]}"; do
  version=$("$python" -c 'import platform; print(platform.python_version())')
  build=build/python$version # as deep as build/release: ccache knows its files by relative paths
  venv=$build/venv
  mkdir -p "$build"
  {
    "$python" -m venv "$venv"
    # Of coremltools only files are read (cmake/coreml_schema.py), so what it needs to run is left out.
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "coremltools==$(pinned coremltools)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check numpy onnx 'onnxruntime>=1.23' \
      "nanobind==$(pinned nanobind)" "netron==$(pinned netron)" jsonschema ml_dtypes
    cmake --preset release -B "$build" -DPython3_EXECUTABLE="$root/$venv/bin/python" \
      -DANEMONE_BUILD_TESTS=OFF -DANEMONE_BUILD_BENCH=OFF
    cmake --build "$build" --target python_package anemone
  } >"$build/log" 2>&1 || { note "Python $version: not built, see $build/log"; failed=1; continue; }
  packages=$("$venv/bin/python" -m pip list --format=freeze | grep -E '^(numpy|onnx|onnxruntime)==' | tr '\n' ' ')
  for name in package session words html report_page import_order; do
    arguments=()
    case $name in
      package) arguments=("$root/$build/anemone" "$root") ;;
      words) arguments=("$root") ;;
    esac
    if ! PYTHONPATH=$root/$build/python "$venv/bin/python" "tests/python/${name}_test.py" \
      "${arguments[@]}" >>"$build/log" 2>&1; then
      note "Python $version: ${name}_test.py failed, see $build/log"
      failed=1
    fi
  done
  note "Python $version: done, with $packages"
done
exit "$failed"
