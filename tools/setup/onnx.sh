#!/usr/bin/env bash
# Builds the ONNX C++ library from PyPI's source package, and installs it in the cache folder.
source "$(dirname "$0")/common.sh"

if [[ ${ONNX_DIR:-} ]]; then
  note "ONNX_DIR is used: $ONNX_DIR"
  exit
fi
version=$(pinned onnx)
in_cache "$(onnx_prefix)" onnx

# With `--no-binary :all:`, pip would also compile CMake from source.
python -m pip download --no-deps --no-binary onnx --dest "$work" "onnx==$version"
tar --extract --directory "$work" --file "$work/onnx-$version.tar.gz"
cmake -S "$work/onnx-$version" -B "$work/build" -G Ninja "${onnx_options[@]}" \
  -DCMAKE_INSTALL_PREFIX="$work/result"
cmake --build "$work/build"
cmake --install "$work/build"
into_cache "$version built"
