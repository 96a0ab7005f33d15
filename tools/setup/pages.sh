#!/usr/bin/env bash
# Regenerates the pages of docs/ and python/ (CMake target `pages`), and fails if that changed one.
source "$(dirname "$0")/common.sh"

checksums() { find docs python -type f -exec sha256sum {} + | sort -k 2; }

before=$(checksums)
cmake --build build/release --target pages
if changes=$(diff <(echo "$before") <(checksums)); then
  note "$(wc -l <<<"$before") files are up to date"
else
  echo "these pages were out of date and have been regenerated; commit them:"
  sed -n 's/^[<>] [0-9a-f]*  //p' <<<"$changes" | sort -u
  exit 1
fi
