#!/usr/bin/env bash
# Runs an experiment on a Cloud TPU VM or a pod of them, with gcloud.
#
#   launch/tpu_vm.sh create  NAME --zone ZONE --type v5litepod-16 [--queued] [--spot]
#   launch/tpu_vm.sh install NAME --zone ZONE [--share HOST:/PATH]
#   launch/tpu_vm.sh run     NAME --zone ZONE -- --config=configs/bilingual.py:pair=en-fr [FLAGS]
#   launch/tpu_vm.sh logs    NAME --zone ZONE
#   launch/tpu_vm.sh fetch   NAME --zone ZONE --to FOLDER
#   launch/tpu_vm.sh delete  NAME --zone ZONE [--queued]
#
# `create` makes the machines, or with --queued asks for them and waits until they are ready.
# `install` copies this checkout's last commit to each of them and installs it for Python 3.11; with
# --share it mounts an NFS share at ~/runs. A pod of several machines needs one, since all of them
# write checkpoints into the workdir.
# `run` starts the run on all machines and returns; the workdir is ~/runs/NAME. `logs` follows the
# output of the first machine. `fetch` copies the workdir, without checkpoints. After machines were
# pre-empted: delete, create, install and run again, which resumes from the last checkpoint on the
# share.
#
# Options:
#   --type TYPE       the accelerator
#   --runtime NAME    the machines' software (v2-alpha-tpuv5-lite)
#   --project NAME    the project (gcloud's default)
#   --queued          queued resources
#   --spot            cheaper machines, which may be taken away
#   --dry-run         print the commands, run none
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ ${1:-} == --help ]]; then usage "${BASH_SOURCE[0]}" && exit; fi
(($# > 1)) || die "say what to do with which machine: see launch/tpu_vm.sh --help"
action=$1 name=$2
shift 2
[[ $name =~ ^[a-z][a-z0-9-]*$ ]] || die "$name: a machine's name has letters a to z, digits and -"
zone='' type='' runtime=v2-alpha-tpuv5-lite share='' to='' queued=0 where=() spot=()
while (($#)); do
  case $1 in
    --dry-run) dry_run=1 && shift ;;
    --queued) queued=1 && shift ;;
    --spot) spot=(--spot) && shift ;;
    --) shift && break ;;
    --zone | --type | --runtime | --project | --share | --to)
      need_value "$@"
      case $1 in
        --zone) zone=$2 ;;
        --type) type=$2 ;;
        --runtime) runtime=$2 ;;
        --project) where+=("--project=$2") ;;
        --share) share=$2 ;;
        --to) to=$2 ;;
      esac
      shift 2
      ;;
    *) die "unknown option $1: see launch/tpu_vm.sh --help; the flags of the run come after --" ;;
  esac
done
[[ -n $zone ]] || die "give --zone"
where=("--zone=$zone" ${where[@]+"${where[@]}"})
tpu=(gcloud compute tpus tpu-vm)

# Runs a command line on one machine of the pod (0, …) or on `all`.
on() {
  run "${tpu[@]}" ssh "$name" "${where[@]}" "--worker=$1" "--command=$2"
}

case $action in
  create)
    [[ -n $type ]] || die "give --type, such as v5litepod-8"
    made=("--accelerator-type=$type" "${where[@]}" ${spot[@]+"${spot[@]}"})
    if ((queued)); then
      run gcloud compute tpus queued-resources create "$name" "--node-id=$name" \
        "--runtime-version=$runtime" "${made[@]}"
      until ((dry_run)); do
        state=$(gcloud compute tpus queued-resources describe "$name" "${where[@]}" \
          '--format=value(state.state)')
        case $state in
          ACTIVE) break ;;
          FAILED | SUSPENDED | SUSPENDING) die "the queued resource is $state: delete it first" ;;
        esac
        printf 'the queued resource is %s\n' "$state" >&2
        sleep "${POLL_SECONDS:-60}"
      done
    else
      run "${tpu[@]}" create "$name" "--version=$runtime" "${made[@]}"
    fi
    ;;
  install)
    folder=/tmp/xling_jax
    if ((!dry_run)); then
      folder=$(mktemp -d)
      trap 'rm -rf "$folder"' EXIT
    fi
    archive=$folder/xling_jax.tar.gz
    run git -C "$(dirname "${BASH_SOURCE[0]}")/.." archive --format=tar.gz --prefix=xling_jax/ \
      "--output=$archive" HEAD
    run "${tpu[@]}" scp "$archive" "$name:xling_jax.tar.gz" "${where[@]}" --worker=all
    on all 'tar xzf xling_jax.tar.gz && { python3.11 -m ensurepip --version >/dev/null 2>&1 || sudo apt-get install -qy python3.11 python3.11-venv; } && python3.11 -m venv ~/venv && ~/venv/bin/pip install -q "./xling_jax[tpu]"'
    if [[ -n $share ]]; then
      on all "sudo apt-get install -qy nfs-common && mkdir -p ~/runs && { mountpoint -q ~/runs || sudo mount -t nfs $(quoted "$share") ~/runs; }"
    fi
    ;;
  run)
    (($#)) || die "give the flags of the run after --, at least --config=…"
    need_no_workdir "runs/$name at home" "$@"
    need_no_processes "$@"
    # The same line for each machine; nohup, and no stream that would hold the connection open.
    on all "cd ~/xling_jax && mkdir -p ~/runs && { nohup ~/venv/bin/python -m xling_jax.main $(quoted "$@") --processes=auto --workdir=\$HOME/runs/$name >> ~/$name.log 2>&1 < /dev/null & }"
    ;;
  logs) on 0 "tail -n 50 -F ~/$name.log" ;;
  fetch)
    [[ -n $to ]] || die "give --to, the folder that gets the results"
    on 0 "tar czf $name.tar.gz --exclude=checkpoints -C ~/runs $name || [ \$? = 1 ]" # 1: a file grew
    run mkdir -p "$to"
    run "${tpu[@]}" scp "$name:$name.tar.gz" "$to/" "${where[@]}" --worker=0
    run tar xzf "$to/$name.tar.gz" -C "$to"
    ;;
  delete)
    if ((queued)); then
      run gcloud compute tpus queued-resources delete "$name" "${where[@]}" --force --quiet
    else
      run "${tpu[@]}" delete "$name" "${where[@]}" --quiet
    fi
    ;;
  *) die "$action: choose create, install, run, logs, fetch or delete" ;;
esac
