#!/usr/bin/env bash
# The tests of the preset arm64, from nothing: fetches its libraries, cross-compiles the tests for 64-bit Arm
# Linux, runs them in an emulator and counts them. Requires g++-aarch64-linux-gnu and qemu-user.
source "$(dirname "$0")/../tools/setup/common.sh"

tools/setup/arm64.sh
tools/setup/onnx.sh arm64
tools/setup/build.sh arm64
ctest --preset arm64 --no-tests=error
awk '/ Testing: / { name = $NF }
     /^\[  PASSED  \]/ { printf "%-26s %5d\n", name, $4; tests += $4; ++programs }
     /^Test Passed/ { ++passed }
     END { print tests " tests of " programs " GoogleTest programs and " passed - programs \
                 " scripts passed on 64-bit Arm" }' \
  build/arm64/Testing/Temporary/LastTest.log
