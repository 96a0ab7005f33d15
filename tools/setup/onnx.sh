#!/usr/bin/env bash
# onnx.sh [arm64]: builds the ONNX C++ library from PyPI's source package, and installs it in the cache
# folder. With arm64, for the preset arm64 (after arm64.sh).
source "$(dirname "$0")/common.sh"

version=$(pinned onnx)
if [[ ${1:-} == arm64 ]]; then
  ANEMONE_ARM64_ROOT=$(arm64_root)
  export ANEMONE_ARM64_ROOT
  options=("${onnx_options[@]}" "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/arm64-linux.cmake")
  in_cache "$(arm64_onnx_prefix)" onnx-arm64
elif [[ ${ONNX_DIR:-} ]]; then
  note "ONNX_DIR is used: $ONNX_DIR"
  exit
else
  options=("${onnx_options[@]}")
  in_cache "$(onnx_prefix)" onnx
fi

# With `--no-binary :all:`, pip would also compile CMake from source.
python -m pip download --no-deps --no-binary onnx --dest "$work" "onnx==$version"
tar --extract --directory "$work" --file "$work/onnx-$version.tar.gz"
cmake -S "$work/onnx-$version" -B "$work/build" -G Ninja "${options[@]}" \
  "-DCMAKE_PROJECT_INCLUDE=$root/cmake/AnemoneHardened.cmake" -DCMAKE_INSTALL_PREFIX="$work/result"
cmake --build "$work/build"
cmake --install "$work/build"
into_cache "$version built"
