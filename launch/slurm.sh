#!/usr/bin/env bash
# Submits an experiment to Slurm: one process for each GPU, on one node or several.
#
#   launch/slurm.sh [OPTIONS] -- --config=configs/bilingual.py:pair=en-fr --workdir=/shared/run …
#
# The workdir must be on a file system that all nodes see. A job that is pre-empted, runs out of
# time or loses a process is put back into the queue, up to 20 times, and resumes from its last
# checkpoint. A job that fails in any other way is not.
#
# Options:
#   --nodes N           nodes (1)
#   --gpus N            GPUs, and processes, on each node (1)
#   --time LIMIT        the time limit, as sbatch takes it (24:00:00)
#   --sweep NAME=A,B,…  an array with a job for each value: the config's option NAME is set to it, and
#                       the value is appended to --workdir; NAME is `row`, `pair`, `seeds`, …, which
#                       --config must not give as well. `python -m xling_jax.gather` puts rows or
#                       seeds (of zero_shot also pairs and tasks) together afterwards, in one folder
#                       with one table
#   --at-once N         jobs of an array that run at the same time (all)
#   --sbatch ARGUMENT   one more argument for sbatch, such as --partition=gpu; can be repeated
#   --setup COMMAND     a line that is run first, such as 'source ~/venv/bin/activate'
#   --dry-run           print the command and the script, submit nothing
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

nodes=1 gpus=1 limit=24:00:00 sweep='' at_once='' setup=':' more=()
while (($#)); do
  case $1 in
    --help) usage "${BASH_SOURCE[0]}" && exit ;;
    --dry-run) dry_run=1 && shift ;;
    --) shift && break ;;
    --nodes | --gpus | --time | --sweep | --at-once | --sbatch | --setup)
      need_value "$@"
      case $1 in
        --nodes) nodes=$2 ;;
        --gpus) gpus=$2 ;;
        --time) limit=$2 ;;
        --sweep) sweep=$2 ;;
        --at-once) at_once=$2 ;;
        --sbatch) more+=("$2") ;;
        --setup) setup=$2 ;;
      esac
      shift 2
      ;;
    *) die "unknown option $1: see launch/slurm.sh --help; the flags of the run come after --" ;;
  esac
done
config='' workdir='' flags=()
for flag in "$@"; do
  case $flag in
    --config=*) config=${flag#--config=} ;;
    --workdir=*)
      workdir=${flag#--workdir=}
      while [[ $workdir == ?*/ ]]; do workdir=${workdir%/}; done # a value is appended to the name
      ;;
    *) flags+=("$flag") ;;
  esac
done
need_no_processes "$@"
[[ -n $config ]] || die "give --config=… after --"
[[ -n $workdir ]] || die "give --workdir=… after --, on a file system that all nodes see"
[[ $nodes =~ ^[1-9][0-9]*$ && $gpus =~ ^[1-9][0-9]*$ && ${at_once:-1} =~ ^[1-9][0-9]*$ ]] ||
  die "--nodes, --gpus and --at-once: give numbers"

values=('') array=() plain='[^a-zA-Z0-9_.+-]' # what a folder's name has none of
if [[ -n $sweep ]]; then
  [[ $sweep =~ ^[A-Za-z_]+=[^,[:space:]]+(,[^,[:space:]]+)*$ ]] ||
    die "--sweep $sweep: write NAME=A,B,… with a value before and after each comma, and no blanks"
  [[ ${config#*.py} != *[:,]"${sweep%%=*}="* ]] ||
    die "--sweep $sweep: take ${sweep%%=*} out of --config=$config"
  IFS=, read -r -a values <<<"${sweep#*=}"
  seen=' '
  for value in "${values[@]}"; do
    folder=${value//$plain/_}
    [[ $seen != *" $folder "* ]] || die "--sweep $sweep: two jobs would write to $workdir-$folder"
    seen+="$folder "
  done
  array=("--array=0-$((${#values[@]} - 1))${at_once:+%$at_once}")
fi

# The batch script; values are read from an array there, by the number of the job in the array.
script=$(
  cat <<EOF
#!/usr/bin/env bash
set -euo pipefail
values=($(quoted "${values[@]}"))
value=\${values[\${SLURM_ARRAY_TASK_ID:-0}]}
config=$(quoted "$config") workdir=$(quoted "$workdir")
if [[ -n \$value ]]; then
  case \$config in *:*) config+=, ;; *) config+=: ;; esac
  config+=$(quoted "${sweep%%=*}")=\$value
  workdir+=-\${value//$plain/_}
fi
set +u # what is read by others may use variables that nobody set
$setup
set -u
if [[ -n \${SLURM_CPUS_PER_TASK:-} ]]; then export SRUN_CPUS_PER_TASK=\$SLURM_CPUS_PER_TASK; fi
# A task that fails with a status after which nothing goes on leaves a file, since srun's status may
# be that of another one, which was ended for it. Slurm signals what it started alone, which hands
# SIGTERM on.
if [[ \$workdir == "~/"* ]]; then workdir=\$HOME/\${workdir:2}; fi
failed=\$workdir.failed-\$SLURM_JOB_ID
mkdir -p "\$(dirname "\$failed")"
rm -f "\$failed"
task='asked=0
trap "asked=1; kill -TERM \"\\\$run\"" TERM
"\$@" & run=\$!
wait "\$run"; status=\$?
while ((asked)); do asked=0; wait "\$run"; status=\$?; done # a signal ended the waiting alone
case \$status in 0 | $(goes_on ' | ')) ;; *) : >"\$0" ;; esac
exit "\$status"'
status=0
srun --kill-on-bad-exit=1 bash -c "\$task" "\$failed" \\
  python -m xling_jax.main "--config=\$config" "--workdir=\$workdir" \\
  --processes=auto $(quoted ${flags[@]+"${flags[@]}"}) || status=\$?
case \$status in
  $(goes_on ' | '))
    ls "\$(dirname "\$failed")" >/dev/null || : # a shared file system may remember that it is not there
    if [[ ! -e \$failed ]] && ((\${SLURM_RESTART_COUNT:-0} < 20)); then
      scontrol requeue "\$SLURM_JOB_ID"
    fi
    ;;
esac
rm -f "\$failed"
exit "\$status"
EOF
)
if ((dry_run)); then printf '%s\n' "$script"; fi
run sbatch --job-name=xling_jax "--nodes=$nodes" "--ntasks-per-node=$gpus" \
  "--gpus-per-node=$gpus" "--time=$limit" --requeue --open-mode=append --signal=TERM@120 \
  ${array[@]+"${array[@]}"} ${more[@]+"${more[@]}"} <<<"$script"
