#!/usr/bin/env bash
# packages.sh [--missing] LIST...: installs the Debian packages in the lists that are not installed yet.
# With --missing, only prints their names.
source "$(dirname "$0")/common.sh"

only_name=
if [[ $1 == --missing ]]; then
  only_name=1
  shift
fi
mapfile -t wanted < <(sed 's/#.*//' "$@" | xargs -n 1 | sort -u)

missing_packages() {
  comm -23 <(printf '%s\n' "${wanted[@]}") <(
    dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
      sed -n 's/^installed //p' | sort -u
  )
}

if ! command -v apt-get >/dev/null; then
  echo "set-up supports Debian 12 only; install these packages by hand, then see CMakeLists.txt:"
  echo "${wanted[*]}"
  exit 1
fi
mapfile -t missing < <(missing_packages)
if [[ $only_name ]]; then
  echo "${missing[*]}"
elif ((${#missing[@]} == 0)); then
  note "all ${#wanted[@]} are installed"
else
  as_root=(env DEBIAN_FRONTEND=noninteractive)
  ((EUID == 0)) || as_root=(sudo "${as_root[@]}")
  "${as_root[@]}" apt-get update
  "${as_root[@]}" apt-get install --yes --no-install-recommends "${missing[@]}"
  note "${#missing[@]} installed"
fi
