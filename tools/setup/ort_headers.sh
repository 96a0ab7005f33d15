#!/usr/bin/env bash
# Fetches ONNX Runtime's C headers into the cache folder, out of the package libonnxruntime-dev of
# a newer Debian suite: Debian 12 has none.
source "$(dirname "$0")/common.sh"
source tools/setup/apt.sh

if [[ ${ANEMONE_ORT_INCLUDE_DIR:-} ]]; then
  note "yours, in $ANEMONE_ORT_INCLUDE_DIR"
  exit
fi
in_cache "$(ort_headers)" ort-headers

served=
for suite in forky sid; do
  private_apt "$work" deb "$suite"
  served=$(apt-cache --config-file "$work/apt.conf" show --no-all-versions libonnxruntime-dev |
    sed -n 's/^Version: //p') || true
  [[ $served ]] && dpkg --compare-versions "$served" ge "$ort_headers_version" && break
  served=
done
if [[ ! $served ]]; then
  echo "no newer Debian suite serves libonnxruntime-dev $ort_headers_version or later through" \
    "this machine's own source entry; fetch ONNX Runtime's C headers by other means and set" \
    "ANEMONE_ORT_INCLUDE_DIR to the folder that holds onnxruntime_ep_c_api.h"
  exit 1
fi
(cd "$work" && apt-get --config-file apt.conf download libonnxruntime-dev)
dpkg-deb --extract "$work"/libonnxruntime-dev_*.deb "$work/unpacked"
mv "$work/unpacked/usr/include/onnxruntime" "$work/result"
ls "$work"/result/onnxruntime_{c_api,ep_c_api}.h
into_cache "$served fetched"
