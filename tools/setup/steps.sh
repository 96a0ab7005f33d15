# shellcheck shell=bash
# Runs numbered steps and shows their progress. Source it, then call `begin NAME COUNT`, and COUNT times
# `step TITLE COMMAND...`. It sources common.sh.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
shopt -s extglob

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  live=1 bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' dim=$'\e[2m' plain=$'\e[0m' erase=$'\r\e[K'
else
  live='' bold='' red='' green='' dim='' plain='' erase=''
fi

begin() {
  step_count=$2 step_number=0 times=() logs=build/logs/$1
  lock build/.lock
  rm -rf "$logs"
  mkdir -p "$logs"
  echo "${bold}anemone: $1${plain}; logs are in $logs, slow dependencies are cached in $cache"
  trap 'stop_ticker' EXIT
}

microseconds() { echo "${EPOCHREALTIME//[^0-9]/}"; }

# elapsed START: prints the time since START, as `0.4 s` or `2:05`.
elapsed() {
  local tenths=$((($(microseconds) - $1) / 100000))
  if ((tenths < 600)); then
    echo "$((tenths / 10)).$((tenths % 10)) s"
  else
    printf '%d:%02d\n' $((tenths / 600)) $((tenths / 10 % 60))
  fi
}

# ticker HEADING LOG: prints the elapsed time and the last line of the log every second on a terminal,
# otherwise every minute.
ticker() {
  local start seconds=0 text
  exec {lock_fd}>&-  # the last `sleep` may outlive the run and would hold the lock
  start=$(microseconds)
  while true; do
    if [[ $live ]]; then
      text="$1  $(elapsed "$start")  $(tail -n 1 "$2" 2>/dev/null | tr -cd '[:print:]')"
      printf '%s%.*s' "$erase" $(($(tput cols) - 1)) "$text"
    elif ((seconds > 0 && seconds % 60 == 0)); then
      echo "$1  still running after $(elapsed "$start")"
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

# The summary of a log: a script's note, or ctest's count.
gist() { sed -n 's/^note: //p; /tests passed.* out of/p' "$1" | tail -n 1; }

# next_heading TITLE: sets `heading`.
next_heading() {
  step_number=$((step_number + 1))
  heading=$(printf '[%*d/%d] %-28s' ${#step_count} "$step_number" "$step_count" "$1")
}

# announce TITLE: prints the heading of a step whose output is shown directly.
announce() {
  local heading
  next_heading "$1"
  echo "$heading"
}

# step TITLE COMMAND...: runs the command and writes its output to a log. If it fails, the end of the log
# is shown. The command must be a program, not a function, because `set -e` is off in a function whose
# status is tested.
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
  times+=("$(($(microseconds) - start)) $title")
  if ((status == 0)); then
    printf '%s  %sok%s %8s  %s\n' "$erase$heading" "$green" "$plain" "$(elapsed "$start")" \
      "$dim$(gist "$log")$plain"
  else
    echo "$erase$heading  ${red}FAILED${plain} after $(elapsed "$start"), exit code $status:"
    tail -n 60 "$log" | sed 's/^/    /'
    echo "${red}$title failed${plain}: the full log is $log"
  fi
  return "$status"
}

# Where the time went: the steps that took more than a second, longest first.
longest_steps() {
  echo "${bold}longest steps${plain}"
  printf '%s\n' "${times[@]}" | sort -nr |
    awk '{ all += $1; time[NR] = $1; $1 = ""; title[NR] = $0 }
         END { for (i = 1; i <= NR && time[i] > 1e6; ++i)
                 printf "  %2d:%02d  %3d %% %s\n", time[i] / 6e7, time[i] / 1e6 % 60,
                        100 * time[i] / all, title[i] }'
}

# set_up PACKAGE_LIST...: the four steps that both commands begin with.
set_up() {
  if ((EUID != 0)) && [[ $(tools/setup/packages.sh --missing "$@") ]]; then
    sudo --validate  # ask for the password now, while the prompt is visible
  fi
  step "Debian packages" tools/setup/packages.sh "$@"
  step "Python environment" tools/setup/python.sh
  step "ONNX C++ library" tools/setup/onnx.sh
  step "ONNX Runtime headers" tools/setup/ort_headers.sh
}
