#!/usr/bin/env bash
# Runs an experiment in several processes on this machine.
#
#   launch/local.sh [--dry-run] PROCESSES -- --config=configs/fake_english.py [FLAGS OF THE RUN]
#
# On CPUs give each process as many devices as it should have, such as --config.devices.cpu=1; on
# GPUs each takes one of CUDA_VISIBLE_DEVICES, or of all. If one fails the others end within
# a minute, and so does this script, with the status of the first that failed; the same command goes
# on from the last checkpoint. Ctrl-C asks all to save and end.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ ${1:-} == --help ]]; then usage "${BASH_SOURCE[0]}" && exit; fi
if [[ ${1:-} == --dry-run ]]; then
  dry_run=1
  shift
fi
[[ ${1:-} =~ ^[1-9][0-9]{0,2}$ ]] || die "say how many (1 to 999): launch/local.sh 2 -- --config=…"
processes=$1
[[ ${2:-} == -- ]] || die "write -- between the number of processes and the flags of the run"
shift 2
(($#)) || die "give the flags of the run, at least --config=…"

python=${PYTHON:-python}
port=${PORT:-$((20000 + RANDOM % 20000))}
gpus=()
if command -v nvidia-smi >/dev/null; then
  listed=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}
  IFS=, read -r -a gpus <<<"$listed"
  ((${#gpus[@]} >= processes)) || die "$processes processes, and GPUs $listed: one each, please"
fi
pids=()
trap 'kill -TERM "${pids[@]}" 2>/dev/null || true' INT TERM
for ((index = 0; index < processes; index++)); do
  line=("$python" -m xling_jax.main "$@" "--coordinator=localhost:$port"
    "--processes=$processes" "--process=$index")
  if ((${#gpus[@]})); then line=(env "CUDA_VISIBLE_DEVICES=${gpus[index]}" "${line[@]}"); fi
  show "${line[@]}"
  if ((!dry_run)); then
    "${line[@]}" &
    pids+=("$!")
  fi
done
status=0
for pid in ${pids[@]+"${pids[@]}"}; do
  own=0
  wait "$pid" || own=$?
  while kill -0 "$pid" 2>/dev/null; do # a signal ended the waiting, not the process
    own=0
    wait "$pid" || own=$?
  done
  if ((own && !status)); then status=$own; fi
done
exit "$status"
