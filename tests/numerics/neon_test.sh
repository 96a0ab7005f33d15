#!/usr/bin/env bash
# Compares the bits of exact mode on emulated Arm NEON with exact_digests.txt.
#
# usage: neon_test.sh PROJECT GENERATED
#   GENERATED: the folder of numerics.h and numerics.cc
# Requires aarch64-linux-gnu-g++ and qemu-aarch64 (Debian: g++-aarch64-linux-gnu, qemu-user). Only
# the headers of Highway and abseil are used, which are the same for both machines.
set -euo pipefail
project=$1 generated=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"
ln -s /usr/include/hwy /usr/include/absl "$work/include/"
cat >"$work/main.cc" <<END
#include <cstdio>
#include "tests/math/exact/exact_computations.h"
int main() {
  for (const std::string& line : anemone::math::ComputationDigests()) std::puts(line.c_str());
}
END
# Static dispatch: every such machine has NEON, and Highway's library for Arm is not available.
aarch64-linux-gnu-g++ -std=c++20 -O1 -ffp-contract=off -DHWY_COMPILE_ONLY_STATIC -DNDEBUG -static \
  -I"$project/tests/numerics/serial" -I"$project" -I"$generated" -I"$work/include" \
  "$project"/math/exact/{exact_contract,exact_elementwise,exact_lanes,exact_mac,exact_pool}.cc \
  "$project"/math/{core/scratch,exact/exact_reduce,exact/exact_table,move/convert,elementwise/elementwise,elementwise/unary}.cc \
  "$project"/tests/math/exact/exact_computations.cc "$work/main.cc" \
  "$project/tests/numerics/serial/out_of_range.cc" "$generated/numerics.cc" -o "$work/exact_bits"
qemu-aarch64 "$work/exact_bits" >"$work/neon"
grep '^math ' "$project/tests/numerics/exact_digests.txt" | diff - "$work/neon"
echo "$(wc -l <"$work/neon") results have the same bits on NEON"
