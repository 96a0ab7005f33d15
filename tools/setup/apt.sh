# shellcheck shell=bash
# Packages from another suite, or as source, through an apt configuration of our own: the machine's
# sources, lists and cache are read at most, never changed. Source it after common.sh.

# private_apt FOLDER TYPE SUITE: makes FOLDER/apt.conf for packages of TYPE (deb, deb-src) of SUITE,
# and fetches the lists. A third party's entry may lack the suite: what counts is what is found.
private_apt() {
  mkdir -p "$1"/{sources,state/lists/partial,cache/archives/partial}
  # The machine's hooks would clean the machine's cache; _apt may not write to our folder.
  cat >"$1/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/sources";
Dir::State "$1/state";
Dir::State::status "/dev/null";
Dir::Cache "$1/cache";
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
  apt_entries "$2" "$3" "$1/sources"
  apt-get --config-file "$1/apt.conf" update || true
}

# apt_entries TYPE SUITE FOLDER [ETC]: writes into FOLDER the machine's entries for Debian itself
# (of ETC, /etc/apt by default), in both of apt's forms, with type and suite changed.
apt_entries() {
  local type=$1 suite=$2 folder=$3 etc=${4:-/etc/apt} codename own file
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # Debian's own entry names the release without a suffix (no -updates) and has `main`.
  own="^($codename|oldoldstable|oldstable|stable)\$"
  rm -f "$folder"/*
  for file in "$etc"/sources.list "$etc"/sources.list.d/*.list; do
    [[ -f $file ]] || continue
    awk -v own="$own" -v type="$type" -v suite="$suite" '
      $1 == "deb" {
        $1 = type                                  # and one blank between fields
        at = 2                                     # the URI, behind options in brackets
        if ($2 ~ /^\[/) while ($(at++) !~ /\]$/ && at < NF) {}
        if ($at !~ /^cdrom:/ && $(at + 1) ~ own && / main( |$)/) { $(at + 1) = suite; print; exit }
      }' "$file" >"$folder/$(basename "$file" .list)-one-line.list"
  done
  for file in "$etc"/sources.list.d/*.sources; do
    [[ -f $file ]] || continue
    awk -v own="$own" -v type="$type" -v suite="$suite" '
      BEGIN { RS = ""; FS = OFS = "\n" }
      {
        debian = main = 0
        for (i = 1; i <= NF; ++i) {
          n = split($i, words, " ")
          for (j = 2; j <= n; ++j) {
            if (words[1] == "Suites:" && words[j] ~ own) debian = 1
            if (words[1] == "Components:" && words[j] == "main") main = 1
          }
          if (words[1] == "Suites:") $i = "Suites: " suite
          if (words[1] == "Types:") $i = "Types: " type
          if (words[1] == "Enabled:" && words[2] == "no") next
        }
        if (debian && main) { print; exit }
      }' "$file" >"$folder/$(basename "$file")"
  done
  find "$folder" -empty -type f -delete
}
