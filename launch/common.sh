# shellcheck shell=bash
# Functions that the launchers share; sourced by them, not run.

dry_run=0

die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# Exit statuses after which a run goes on when it is started again, with something between them.
# 143: asked to end, and saved; 75 and 134: another process was lost; 137: killed.
goes_on() {
  printf '%s' "75${1}134${1}137${1}143"
}

# Prints a command as it could be typed in.
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

# The text at the top of a launcher, from its second line up to the first that is no comment.
usage() {
  awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$1"
}

# Prints words as one line that a shell reads back as the same words.
quoted() {
  local line
  (($#)) || return 0
  printf -v line '%q ' "$@"
  printf '%s' "${line% }"
}

# Ends unless an option, the first argument, has a value after it.
need_value() {
  [[ -n ${2:-} ]] || die "$1: give a value after it"
}

# Ends unless a shell, Slurm and YAML hand each word on unchanged: it must not contain control
# characters, such as newlines, or what YAML takes for the end of a line.
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

# Ends if the flags of a run, all words but the first, name a workdir; the first says where it is.
need_no_workdir() {
  local flag
  for flag in "${@:2}"; do
    [[ $flag != --workdir* && $flag != -workdir* ]] || die "$flag: leave it out; the workdir is $1"
  done
}

# Ends if the flags of a run name its processes, which the launcher does.
need_no_processes() {
  local flag
  for flag in "$@"; do
    case $flag in
      --process* | -process* | --coordinator* | -coordinator*)
        die "$flag: leave it out; the launcher says which processes there are"
        ;;
    esac
  done
}

need_lines "$@" # the arguments of the launcher that sources this
