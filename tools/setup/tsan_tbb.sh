#!/usr/bin/env bash
# Builds Debian's oneTBB with ThreadSanitizer into the cache folder, for the tsan preset: of a
# library that is not instrumented it sees the accesses but not what orders them, and reports races
# that are none. (Suppressing what TBB calls would hide our own races: TBB calls our loops.)
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
