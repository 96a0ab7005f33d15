#!/usr/bin/env bash
# Creates .venv and installs requirements.txt in it, unless that has been done.
source "$(dirname "$0")/common.sh"

python=/usr/bin/python3  # Debian's Python, which has python3-venv
stamp=.venv/set-up
now=$("$python" --version; echo "$root"; cat tools/setup/requirements.txt)
if [[ -f $stamp && $(<"$stamp") == "$now" ]]; then
  note "up to date"
  exit
fi
# A moved clone or another Python needs a new environment; new requirements only need pip.
if [[ ! -f $stamp || $(head -n 2 "$stamp") != $(head -n 2 <<<"$now") ]]; then
  "$python" -m venv --clear .venv
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
.venv/bin/python -m pip install --requirement tools/setup/requirements.txt
echo "$now" >"$stamp"
note "$(.venv/bin/python -m pip freeze | wc -l) packages installed"
