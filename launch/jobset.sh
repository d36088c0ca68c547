#!/usr/bin/env bash
# Runs an experiment on Kubernetes as a JobSet: one pod a machine, on TPUs or GPUs.
#
#   launch/jobset.sh NAME --image IMAGE --pods N --volume CLAIM (--tpu TYPE:TOPOLOGY | --gpu N) \
#       -- --config=configs/bilingual.py:pair=en-fr [FLAGS OF THE RUN]
#
# The image has the project installed for its accelerator (pip install "./xling_jax[tpu]", or [cuda])
# and starts in its checkout, where configs/ is. The volume, which many pods must be able to write
# (ReadWriteMany), is mounted at /runs; the workdir is /runs/NAME. When a pod is lost, all start
# again and resume from the last checkpoint, as when one is killed or its runtime aborts. A run that
# ends with an error of its own does not start again. To resume a JobSet that has ended, delete it
# first: kubectl delete jobset NAME.
#
# Options:
#   --image IMAGE        the containers' image
#   --pods N             number of machines
#   --volume CLAIM       a PersistentVolumeClaim
#   --tpu TYPE:TOPOLOGY  such as tpu-v5-lite-podslice:4x4; 4 chips a machine, or --chips N
#   --gpu N              GPUs of a machine
#   --restarts N         how often it may start again (20)
#   --namespace NAME     the namespace (kubectl's default)
#   --dry-run            print what would be created
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ ${1:-} == --help ]]; then usage "${BASH_SOURCE[0]}" && exit; fi
[[ ${1:-} =~ ^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$ ]] ||
  die "give a name first, of at most 40 letters a to z, digits and -, of which - is not the last"
name=$1
shift
image='' pods='' volume='' tpu='' chips='' gpu='' restarts=20 where=()
while (($#)); do
  case $1 in
    --dry-run) dry_run=1 && shift ;;
    --) shift && break ;;
    --image | --pods | --volume | --tpu | --chips | --gpu | --restarts | --namespace)
      need_value "$@"
      case $1 in
        --image) image=$2 ;;
        --pods) pods=$2 ;;
        --volume) volume=$2 ;;
        --tpu) tpu=$2 ;;
        --chips) chips=$2 ;;
        --gpu) gpu=$2 ;;
        --restarts) restarts=$2 ;;
        --namespace) where=("--namespace=$2") ;;
      esac
      shift 2
      ;;
    *) die "unknown option $1: see launch/jobset.sh --help; the flags of the run come after --" ;;
  esac
done
for needed in image pods volume; do [[ -n ${!needed} ]] || die "give --$needed"; done
[[ -n $tpu || -n $gpu ]] || die "give --tpu or --gpu"
[[ -z $tpu || -z $gpu ]] || die "give --tpu or --gpu, not both"
[[ -z $chips || -n $tpu ]] || die "--chips goes with --tpu: leave it out, or give --tpu"
chips=${chips:-4}
[[ $pods =~ ^[1-9][0-9]*$ && $chips =~ ^[1-9][0-9]*$ && $restarts =~ ^(0|[1-9][0-9]*)$ ]] ||
  die "--pods, --chips and --restarts: give numbers"
(($#)) || die "give the flags of the run after --, at least --config=…"
need_no_workdir "/runs/$name" "$@"
need_no_processes "$@"

# A word as a string of YAML.
yaml() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

port=8476
# The first pod's name in the network, as JobSet makes it.
first=$name-machines-0-0.$name
arguments=()
# Kubernetes reads $$ as $, and $(NAME) as a variable.
for flag in "${@//\$/\$\$}" "--workdir=/runs/$name" "--coordinator=$first:$port" "--processes=$pods" \
  "--process=\$(JOB_COMPLETION_INDEX)"; do
  arguments+=("$(yaml "$flag")")
done
if [[ -n $tpu ]]; then
  [[ $tpu == *?:?* ]] || die "--tpu $tpu: write TYPE:TOPOLOGY, such as tpu-v5-lite-podslice:4x4"
  selector="
              nodeSelector:
                cloud.google.com/gke-tpu-accelerator: $(yaml "${tpu%%:*}")
                cloud.google.com/gke-tpu-topology: $(yaml "${tpu#*:}")"
  resource="google.com/tpu: \"$chips\""
else
  [[ $gpu =~ ^[1-9][0-9]*$ ]] || die "--gpu $gpu: give a number"
  selector='' resource="nvidia.com/gpu: \"$gpu\""
fi
manifest=$(
  cat <<EOF
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: $(yaml "$name")
spec:
  failurePolicy:
    maxRestarts: $restarts
    rules:
      - action: FailJobSet
        onJobFailureReasons: [PodFailurePolicy]
  replicatedJobs:
    - name: machines
      replicas: 1
      template:
        spec:
          parallelism: $pods
          completions: $pods
          completionMode: Indexed
          backoffLimit: 0
          podFailurePolicy:
            rules:
              - action: FailJob
                onExitCodes:
                  operator: NotIn
                  values: [$(goes_on ', ')]
          template:
            spec:
              restartPolicy: Never$selector
              terminationGracePeriodSeconds: 120
              containers:
                - name: run
                  image: $(yaml "$image")
                  command: ["python", "-m", "xling_jax.main"]
                  args: [$(
    IFS=,
    printf '%s' "${arguments[*]}"
  )]
                  ports:
                    - containerPort: $port
                  resources:
                    limits:
                      $resource
                  volumeMounts:
                    - name: runs
                      mountPath: /runs
              volumes:
                - name: runs
                  persistentVolumeClaim:
                    claimName: $(yaml "$volume")
EOF
)
iconv -f UTF-8 -t UTF-8 <<<"$manifest" >/dev/null 2>&1 || die "write all arguments in UTF-8"
if ((dry_run)); then printf '%s\n' "$manifest"; fi
run kubectl create ${where[@]+"${where[@]}"} -f - <<<"$manifest"
# The first pod, the only one that prints.
pod=jobset.sigs.k8s.io/jobset-name=$name,batch.kubernetes.io/job-completion-index=0
((dry_run)) || printf 'Follow it with: kubectl logs %s-f --tail=-1 -l %s\n' \
  "${where[*]+${where[*]} }" "$pod" >&2
