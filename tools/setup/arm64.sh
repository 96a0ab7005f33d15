#!/usr/bin/env bash
# Fetches what the preset arm64 needs to the cache folder: Debian's development packages for 64-bit Arm,
# unpacked, and ONNX Runtime's library from its wheel. The machine's own packages stay as they are.
source "$(dirname "$0")/common.sh"
source tools/setup/apt.sh

in_cache "$(arm64_root)" arm64-root

private_apt "$work" deb "$(. /etc/os-release && echo "$VERSION_CODENAME")" arm64
mapfile -t packages < <(arm64_packages)
apt-get --config-file "$work/apt.conf" --yes --download-only --no-install-recommends install \
  "${packages[@]}"
mkdir "$work/unpacked"
for package in "$work"/cache/archives/*.deb; do
  dpkg-deb --extract "$package" "$work/unpacked"
done
# Libraries and headers alone: the emulator would see a folder such as /tmp here instead of the machine's.
mkdir "$work/result"
mv "$work"/unpacked/{lib,usr} "$work/result"
rm -rf "$work"/result/usr/{bin,sbin,share/doc}
# The cross compiler looks for its C++ library, and FlatBuffers' CMake package for its compiler, below
# the root.
ln -s /usr/aarch64-linux-gnu "$work/result/usr/aarch64-linux-gnu"
mkdir "$work/result/usr/bin"
ln -s "$(command -v flatc)" "$work/result/usr/bin/flatc"

# qemu-user 7.2 shows programs this machine's processors, which ONNX Runtime's library for Arm cannot read
# (it crashes). Files below the root replace the machine's: two processors, Neoverse N1.
mkdir -p "$work"/result/{proc,sys/devices/system/cpu}
for processor in 0 1; do
  cat <<END
processor	: $processor
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm asimddp
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

END
done >"$work/result/proc/cpuinfo"
echo 0-1 | tee "$work"/result/sys/devices/system/cpu/{possible,present} >/dev/null

python -m pip download --no-deps --only-binary :all: --platform manylinux_2_27_aarch64 \
  --platform manylinux_2_28_aarch64 --dest "$work" "onnxruntime==$(pinned onnxruntime)"
python -m zipfile --extract "$work"/onnxruntime-*.whl "$work/wheel"
mv "$work"/wheel/onnxruntime/capi/libonnxruntime.so.* "$work/result/usr/lib"
into_cache "${#packages[@]} packages and what they need, unpacked"
