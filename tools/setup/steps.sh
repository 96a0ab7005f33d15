# shellcheck shell=bash
# Numbered steps for a person to follow: source it, then `begin NAME COUNT`, and COUNT times
# `step TITLE COMMAND...`. Brings common.sh along.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
shopt -s extglob

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  live=1 bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' dim=$'\e[2m' plain=$'\e[0m' erase=$'\r\e[K'
else
  live='' bold='' red='' green='' dim='' plain='' erase=''
fi

begin() {
  step_count=$2 step_number=0 logs=build/logs/$1
  lock build/.lock
  rm -rf "$logs"
  mkdir -p "$logs"
  echo "${bold}anemone: $1${plain}; logs are in $logs, what is slow to make is kept in $cache"
  trap 'stop_ticker' EXIT
}

microseconds() { echo "${EPOCHREALTIME//[^0-9]/}"; }

# elapsed START: the time since, as `0.4 s` or `2:05`.
elapsed() {
  local tenths=$((($(microseconds) - $1) / 100000))
  if ((tenths < 600)); then
    echo "$((tenths / 10)).$((tenths % 10)) s"
  else
    printf '%d:%02d\n' $((tenths / 600)) $((tenths / 10 % 60))
  fi
}

# ticker HEADING LOG: says every second (a minute, if nobody watches) how long and how far it is.
ticker() {
  local start seconds=0 text
  exec {lock_fd}>&-  # its last `sleep` may outlive the run
  start=$(microseconds)
  while true; do
    if [[ $live ]]; then
      text="$1  $(elapsed "$start")  $(tail -n 1 "$2" 2>/dev/null | tr -cd '[:print:]')"
      printf '%s%.*s' "$erase" $(($(tput cols) - 1)) "$text"
    elif ((seconds > 0 && seconds % 60 == 0)); then
      echo "$1  still at it after $(elapsed "$start")"
    fi
    sleep 1 >/dev/null 2>&1
    seconds=$((seconds + 1))
  done
}

stop_ticker() {
  [[ ${ticker_pid:-} ]] || return 0
  kill "$ticker_pid" 2>/dev/null || true
  wait "$ticker_pid" 2>/dev/null || true
  ticker_pid=
}

# The line of a log that tells most: a script's note, or ctest's count.
gist() { sed -n 's/^note: //p; /tests passed.* out of/p' "$1" | tail -n 1; }

# next_heading TITLE: sets `heading`.
next_heading() {
  step_number=$((step_number + 1))
  heading=$(printf '[%*d/%d] %-28s' ${#step_count} "$step_number" "$step_count" "$1")
}

# announce TITLE: begins a step that speaks for itself.
announce() {
  local heading
  next_heading "$1"
  echo "$heading"
}

# step TITLE COMMAND...: the command's output goes to a log, whose end is shown if it fails.
# The command is a program, not a function: `set -e` means nothing in a function that is tested.
step() {
  local title=$1 heading start log status=0
  shift
  next_heading "$title"
  log=$logs/$(printf '%02d-%s.log' "$step_number" "${title//+([^a-zA-Z+])/-}")
  start=$(microseconds)
  ticker "$heading" "$log" &
  ticker_pid=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_ticker
  if ((status == 0)); then
    printf '%s  %sok%s %8s  %s\n' "$erase$heading" "$green" "$plain" "$(elapsed "$start")" \
      "$dim$(gist "$log")$plain"
  else
    echo "$erase$heading  ${red}FAILED${plain} after $(elapsed "$start"), exit code $status:"
    tail -n 60 "$log" | sed 's/^/    /'
    echo "${red}$title failed${plain}: the whole log is $log"
  fi
  return "$status"
}

# set_up PACKAGE_LIST...: the four steps that both commands begin with.
set_up() {
  if ((EUID != 0)) && [[ $(tools/setup/packages.sh --missing "$@") ]]; then
    sudo --validate  # asks for the password here, where it can be seen
  fi
  step "Debian packages" tools/setup/packages.sh "$@"
  step "Python environment" tools/setup/python.sh
  step "ONNX C++ library" tools/setup/onnx.sh
  step "ONNX Runtime headers" tools/setup/ort_headers.sh
}
