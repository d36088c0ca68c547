#!/usr/bin/env bash
# Runs an experiment in several processes on this machine.
#
#   launch/local.sh [--dry-run] PROCESSES -- --config=configs/fake_english.py [FLAGS OF THE RUN]
#
# On CPUs, say how many devices each process should have, such as --config.devices.cpu=1. On GPUs,
# each process takes one of CUDA_VISIBLE_DEVICES, or of all GPUs (none with JAX_PLATFORMS=cpu). If
# one fails, the others end, within a minute if all had found each other, and so does this script,
# with the status of a process that failed by itself; the same command resumes from the last
# checkpoint. Ctrl-C asks all processes to save and end.
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
need_no_processes "$@"

python=${PYTHON:-python}
port=${PORT:-$((20000 + RANDOM % 20000))}
gpus=()
if [[ ${JAX_PLATFORMS:-} != cpu ]] && command -v nvidia-smi >/dev/null; then
  if [[ -n ${CUDA_VISIBLE_DEVICES+set} ]]; then
    listed=$CUDA_VISIBLE_DEVICES
  else
    listed=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null) || listed=''
  fi
  IFS=, read -r -a gpus <<<"${listed//$'\n'/,}"
  ((!${#gpus[@]} || ${#gpus[@]} >= processes)) ||
    die "$processes processes, and GPUs ${gpus[*]}: one each, please"
fi
pids=() asked=0
trap 'asked=1; kill -TERM "${pids[@]}" 2>/dev/null || true' INT TERM
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
  while ((asked)); do # a signal ended the waiting, not the process; of an ended one Bash has the status
    asked=0 own=0
    wait "$pid" || own=$?
  done
  # 143: asked to end; 75 and 134: another process was lost.
  case $status in 0 | 75 | 134 | 143) if ((own)); then status=$own; fi ;; esac
done
exit "$status"
