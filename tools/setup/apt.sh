# shellcheck shell=bash
# Fetches packages from another suite, or source packages, with a private apt configuration. The
# machine's sources, lists and cache are never changed. Source it after common.sh.

# private_apt FOLDER TYPE SUITE [ARCHITECTURE]: writes FOLDER/apt.conf for packages of TYPE (deb, deb-src)
# of SUITE, and fetches the lists. Errors are ignored, because a third party's entry may not have the
# suite; the caller checks whether it finds the package.
private_apt() {
  local architecture=${4:-$(dpkg --print-architecture)}
  mkdir -p "$1"/{sources,state/lists/partial,cache/archives/partial}
  # The machine's hooks would clean the machine's cache. The user _apt cannot write to our folder.
  cat >"$1/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/sources";
Dir::State "$1/state";
Dir::State::status "/dev/null";
Dir::Cache "$1/cache";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
  apt_entries "$2" "$3" "$1/sources"
  apt-get --config-file "$1/apt.conf" update || true
}

# apt_entries TYPE SUITE FOLDER [ETC]: copies the machine's entries for Debian itself from ETC (default
# /etc/apt) to FOLDER, in both of apt's formats, with type and suite changed.
apt_entries() {
  local type=$1 suite=$2 folder=$3 etc=${4:-/etc/apt} codename own file
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # The entry for Debian itself has the release without a suffix (not -updates), and `main`.
  own="^($codename|oldoldstable|oldstable|stable)\$"
  rm -f "$folder"/*
  for file in "$etc"/sources.list "$etc"/sources.list.d/*.list; do
    [[ -f $file ]] || continue
    awk -v own="$own" -v type="$type" -v suite="$suite" '
      $1 == "deb" {
        $1 = type                                  # this also reduces blanks between fields to one
        at = 2                                     # the URI, after options in brackets
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
