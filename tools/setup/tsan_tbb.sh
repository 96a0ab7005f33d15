#!/usr/bin/env bash
# Builds Debian's oneTBB with ThreadSanitizer in the cache folder, for the tsan preset. In a library that
# is not instrumented, ThreadSanitizer sees accesses but not the synchronization, and reports false
# races. (Suppressing everything called by TBB would hide our races: TBB calls our loops.)
source "$(dirname "$0")/common.sh"
source tools/setup/apt.sh

in_cache "$(tsan_tbb_prefix)" tsan-tbb

private_apt "$work" deb-src "$(. /etc/os-release && echo "$VERSION_CODENAME")"
(cd "$work" && apt-get --config-file apt.conf source --download-only onetbb)
mkdir "$work/source"
tar --extract --directory "$work/source" --strip-components 1 --file "$work"/onetbb_*.orig.tar.xz
cmake -S "$work/source" -B "$work/build" -G Ninja "${tsan_tbb_options[@]}" \
  -DCMAKE_INSTALL_PREFIX="$work/result"
cmake --build "$work/build"
cmake --install "$work/build"
into_cache "built"
