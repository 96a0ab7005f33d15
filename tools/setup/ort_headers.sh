#!/usr/bin/env bash
# Fetches ONNX Runtime's C headers to the cache folder, from the package libonnxruntime-dev of a newer
# Debian suite, because Debian 12 does not have it.
source "$(dirname "$0")/common.sh"
source tools/setup/apt.sh

if [[ ${ANEMONE_ORT_INCLUDE_DIR:-} ]]; then
  note "ANEMONE_ORT_INCLUDE_DIR is used: $ANEMONE_ORT_INCLUDE_DIR"
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
  echo "libonnxruntime-dev $ort_headers_version or later was not found in a newer Debian suite" \
    "with this machine's apt sources; get ONNX Runtime's C headers from elsewhere and set" \
    "ANEMONE_ORT_INCLUDE_DIR to the folder with onnxruntime_ep_c_api.h"
  exit 1
fi
(cd "$work" && apt-get --config-file apt.conf download libonnxruntime-dev)
dpkg-deb --extract "$work"/libonnxruntime-dev_*.deb "$work/unpacked"
mv "$work/unpacked/usr/include/onnxruntime" "$work/result"
ls "$work"/result/onnxruntime_{c_api,ep_c_api}.h
into_cache "$served fetched"
