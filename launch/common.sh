# shellcheck shell=bash
# What the launchers share; read by them, not run.

dry_run=0

die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# Prints a command as it could be typed.
show() {
  printf '+' >&2
  printf ' %q' "$@" >&2
  printf '\n' >&2
}

# Prints a command, and runs it unless --dry-run was given.
run() {
  show "$@"
  if ((dry_run)); then return 0; fi
  "$@"
}

# The text at the top of a launcher, from its second line to the first that is no comment.
usage() {
  awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$1"
}

# Words as one line that a shell reads back as the same words.
quoted() {
  local line
  (($#)) || return 0
  printf -v line '%q ' "$@"
  printf '%s' "${line% }"
}

# The option and what follows it.
need_value() {
  [[ -n ${2:-} ]] || die "$1: give a value after it"
}

# Ends unless each word is a line that a shell, Slurm and YAML hand on as it is: without control
# characters, as newlines, and without what YAML takes for the end of a line.
need_lines() {
  local LC_ALL=C word
  for word in "$@"; do
    case $word in
      *[[:cntrl:]]* | *$'\xc2'[$'\x80'-$'\x9f']* | *$'\xe2\x80'[$'\xa8\xa9']*)
        die "$(printf '%q' "$word"): take out the newlines and other control characters"
        ;;
    esac
  done
}

need_lines "$@" # what the launcher that reads this was given
