#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: writes the paths of the dependencies to build/setup.cmake, configures the
# preset if it is new or has changed, and builds all of it or only these targets.
source "$(dirname "$0")/common.sh"

preset=$1 targets=("${@:2}")
ort_libraries=("$root"/.venv/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*)
tsan_tbb=$(tsan_tbb_prefix)
[[ -d $tsan_tbb ]] || tsan_tbb=
setup="# Written by tools/setup/build.sh, read by cmake/AnemoneDependencies.cmake.
set(ANEMONE_SETUP_PYTHON \"$root/.venv/bin/python\")
set(ANEMONE_SETUP_ONNX_PREFIX \"$(onnx_prefix)\")
set(ANEMONE_SETUP_TSAN_TBB_PREFIX \"$tsan_tbb\")
set(ANEMONE_SETUP_ORT_INCLUDE_DIR \"${ANEMONE_ORT_INCLUDE_DIR:-$(ort_headers)}\")
set(ANEMONE_SETUP_ORT_LIBRARY \"${ort_libraries[0]}\")"
arm64=$(arm64_root)
if [[ -d $arm64 ]]; then
  ort_libraries=("$arm64"/usr/lib/libonnxruntime.so.*)
  setup+="
set(ANEMONE_SETUP_ARM64_ROOT \"$arm64\")
set(ANEMONE_SETUP_ARM64_ONNX_PREFIX \"$(arm64_onnx_prefix)\")
set(ANEMONE_SETUP_ARM64_ORT_LIBRARY \"${ort_libraries[0]}\")"
fi
if [[ ! -f build/setup.cmake || $(<build/setup.cmake) != "$setup" ]]; then
  echo "$setup" >build/setup.cmake  # CMake depends on it, so it configures again
fi
if [[ ! -f build/$preset/build.ninja || CMakePresets.json -nt build/$preset/build.ninja ]]; then
  cmake --preset "$preset"
fi
cmake --build --preset "$preset" ${targets:+--target "${targets[@]}"}
