"""The launchers: what they would do, what they call, and what they refuse."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCH = Path(__file__).parent.parent / "launch"
RUN = ["--config=configs/bilingual.py:pair=en-fr", "--config.texts.x=a b;'c'"]
ENVIRONMENT = {  # as outside of a job, and without the GPUs of this machine
    **{name: value for name, value in os.environ.items()
       if not name.startswith(("SLURM_", "SRUN_", "CUDA_VISIBLE_DEVICES"))},
    "JAX_PLATFORMS": "cpu",
}  # fmt: skip
STUB = f"""#!{sys.executable}
import json, os, sys, tarfile
said = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
with open(os.environ["RECORD"], "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], said]) + "\\n")
if "describe" in sys.argv:
    calls = open(os.environ["RECORD"]).read().count("describe")
    print("ACTIVE" if calls > 1 else os.environ.get("STATE", "WAITING_FOR_RESOURCES"))
if sys.argv[4:5] == ["scp"] and ":" in sys.argv[5]:
    with tarfile.open(sys.argv[6] + sys.argv[5].split(":")[1], "x:gz") as file:
        file.addfile(tarfile.TarInfo("pod/table.csv"))
"""


@pytest.fixture
def launch(tmp_path):
    """Runs a launcher where other commands record what they were given, and scp brings a table."""
    record, folder = tmp_path / "calls", tmp_path / "bin"
    folder.mkdir()
    for name in ("gcloud", "git", "sbatch", "kubectl"):
        (folder / name).write_text(STUB)
        (folder / name).chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record)}
    environment |= {"POLL_SECONDS": "0"}

    def run(script, *arguments, **more):
        done = subprocess.run(
            [LAUNCH / script, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=environment | more,
            cwd=tmp_path,
        )
        lines = record.read_text().splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return done, [json.loads(line) for line in lines]

    return run


@pytest.mark.parametrize("script", sorted(p.name for p in LAUNCH.glob("*.sh")))
def test_shellcheck_finds_nothing(script):
    shellcheck = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    assert shellcheck, "install the test requirements"
    done = subprocess.run([shellcheck, "-x", script], capture_output=True, text=True, cwd=LAUNCH)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", ["local.sh", "slurm.sh", "tpu_vm.sh", "jobset.sh"])
def test_help_says_how_it_is_called(launch, script):
    done, calls = launch(script, "--help")
    assert done.returncode == 0 and f"launch/{script}" in done.stdout and not calls
    assert "--dry-run" in done.stdout and "set -euo" not in done.stdout


TPU = ["--zone", "us-east5-b", "--project", "lab"]
WHERE = ["--zone=us-east5-b", "--project=lab"]
MACHINE = ["compute", "tpus", "tpu-vm"]


def tpu_vm(launch, action, *more):
    """What a step calls, which must succeed."""
    done, calls = launch("tpu_vm.sh", action, "pod", *TPU, *more)
    assert done.returncode == 0, done.stderr
    return calls


def test_a_tpu_pod_is_made_installed_run_read_and_deleted(launch, tmp_path):
    assert tpu_vm(launch, "create", "--type", "v5litepod-16", "--spot") == [
        ["gcloud", *MACHINE, "create", "pod", "--version=v2-alpha-tpuv5-lite",
         "--accelerator-type=v5litepod-16", *WHERE, "--spot", ""]
    ]  # fmt: skip
    git, copy, installed, mounted = tpu_vm(launch, "install", "--share", "10.0.0.2:/runs")
    archive = copy[5]
    assert git == ["git", "-C", f"{LAUNCH}/..", "archive", "--format=tar.gz", "--prefix=xling_jax/",
                   f"--output={archive}", "HEAD", ""]  # fmt: skip
    assert copy == ["gcloud", *MACHINE, "scp", archive, "pod:xling_jax.tar.gz", *WHERE,
                    "--worker=all", ""]  # fmt: skip
    assert not Path(archive).parent.exists()
    everywhere = [*MACHINE, "ssh", "pod", *WHERE, "--worker=all"]
    assert installed[1:-2] == mounted[1:-2] == everywhere
    assert "pip install" in installed[-2]
    assert "mount -t nfs 10.0.0.2:/runs ~/runs" in mounted[-2]
    (call,) = tpu_vm(launch, "run", "--", *RUN)
    assert call[1:-2] == everywhere
    command = call[-2].removeprefix("--command=")
    assert command.endswith("< /dev/null & }")  # so that the connection may end
    shown = command.replace("{ nohup ~/venv/bin/python", "printf '%s\\n'").split(">>")[0]
    shown = subprocess.run(
        ["bash", "-c", shown.replace("cd ~/xling_jax && mkdir -p ~/runs &&", "")],
        capture_output=True, text=True, env={"HOME": "/home/me", "PATH": os.environ["PATH"]},
    ).stdout.splitlines()  # fmt: skip
    assert shown == [
        "-m",
        "xling_jax.main",
        *RUN,
        "--processes=auto",
        "--workdir=/home/me/runs/pod",
    ]
    assert tpu_vm(launch, "logs") == [
        ["gcloud", *MACHINE, "ssh", "pod", *WHERE, "--worker=0",
         "--command=tail -n 50 -F ~/pod.log", ""]
    ]  # fmt: skip
    packed, copy = tpu_vm(launch, "fetch", "--to", "out/here")
    assert packed[1:-2] == [*MACHINE, "ssh", "pod", *WHERE, "--worker=0"]
    assert "tar czf pod.tar.gz --exclude=checkpoints -C ~/runs pod" in packed[-2]
    assert copy == ["gcloud", *MACHINE, "scp", "pod:pod.tar.gz", "out/here/", *WHERE, "--worker=0",
                    ""]  # fmt: skip
    assert (tmp_path / "out/here/pod/table.csv").is_file()
    assert tpu_vm(launch, "delete") == [
        ["gcloud", *MACHINE, "delete", "pod", *WHERE, "--quiet", ""]
    ]


def test_queued_machines_are_waited_for(launch):
    queued = ["gcloud", "compute", "tpus", "queued-resources"]
    asked = ["create", "pod", *TPU, "--type", "v6e-16", "--runtime", "v2-alpha-tpuv6e", "--spot",
             "--queued"]  # fmt: skip
    done, calls = launch("tpu_vm.sh", *asked)
    assert done.returncode == 0 and "WAITING_FOR_RESOURCES" in done.stderr
    described = [*queued, "describe", "pod", *WHERE, "--format=value(state.state)", ""]
    assert calls == [
        [*queued, "create", "pod", "--node-id=pod", "--runtime-version=v2-alpha-tpuv6e",
         "--accelerator-type=v6e-16", *WHERE, "--spot", ""],
        described,
        described,
    ]  # fmt: skip
    done, calls = launch("tpu_vm.sh", *asked, STATE="FAILED")
    assert done.returncode == 2 and "the queued resource is FAILED" in done.stderr
    assert tpu_vm(launch, "delete", "--queued") == [
        [*queued, "delete", "pod", *WHERE, "--force", "--quiet", ""]
    ]


def test_slurm_gets_a_job_for_each_value_of_a_sweep(launch, tmp_path):
    flags = ["--config=configs/fake_english.py:scale=paper", "--workdir=~/shared/run//"]
    done, calls = launch(
        "slurm.sh", "--nodes", "2", "--gpus", "4", "--time", "1:00:00",
        "--sweep", "row=0,inv-order[fake]", "--at-once", "1", "--sbatch", "--partition=gpu",
        "--setup", ": $UNSET", "--", *flags, RUN[1],
    )  # fmt: skip
    ((*called, script),) = calls
    assert done.returncode == 0 and called == [
        "sbatch",
        "--job-name=xling_jax",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--gpus-per-node=4",
        "--time=1:00:00",
        "--requeue",
        "--open-mode=append",
        "--signal=TERM@120",
        "--array=0-1%1",
        "--partition=gpu",
    ]
    for task, (value, folder) in enumerate(
        [("0", "run-0"), ("inv-order[fake]", "run-inv-order_fake_")]
    ):
        ran = batch(tmp_path, script, [0], SLURM_ARRAY_TASK_ID=str(task), HOME=str(tmp_path))
        assert ran == [
            ["python", "-m", "xling_jax.main",
             f"--config=configs/fake_english.py:scale=paper,row={value}",
             f"--workdir={tmp_path}/shared/{folder}", "--processes=auto", RUN[1]]
        ]  # fmt: skip


SRUN = """#!/usr/bin/env bash
[[ $1 == --kill-on-bad-exit=1 && ${SRUN_CPUS_PER_TASK:-} == "${SLURM_CPUS_PER_TASK:-}" ]] || exit 9
shift
worst=0
for status in $STATUSES; do
  STATUS=$status "$@" &
  if ((status == 143)); then
    while [[ ! -e $RECORD.begun ]]; do sleep 0.1; done
    kill -TERM $! # as Slurm signals: what it started, and not what that has started
  fi
  wait $!
  own=$?
  ((own <= worst)) || worst=$own
done
exit "$worst"
"""


ENDED = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
if os.environ["STATUS"] == "143":
    open(os.environ["RECORD"] + ".begun", "w").close()
    time.sleep(60)
sys.exit(int(os.environ["STATUS"]))
"""


def batch(tmp_path, script, statuses, **environment):
    """What a batch script calls where tasks, one after the other, end with some statuses (143 when
    they are asked to), of which srun's is the highest."""
    folder = tmp_path / "node"
    folder.mkdir(exist_ok=True)
    for name, text in (("srun", SRUN), ("python", STUB + ENDED), ("scontrol", STUB)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    record = tmp_path / "on_node"
    for path in (record, tmp_path / "on_node.begun"):
        path.unlink(missing_ok=True)
    environment = {**ENVIRONMENT, "RECORD": str(record), "SLURM_JOB_ID": "7", **environment,
                   "STATUSES": " ".join(map(str, statuses)),
                   "PATH": f"{folder}:{os.environ['PATH']}"}  # fmt: skip
    job = tmp_path / "job.sh"
    job.write_text(script)
    done = subprocess.run(["bash", job], env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == max(statuses), done.stderr
    return [json.loads(line)[:-1] for line in record.read_text().splitlines()]


@pytest.mark.parametrize(
    ("statuses", "again"),
    [([143], True), ([75, 143], True), ([134], True), ([137], True), ([1], False),
     ([1, 143], False), ([0], False), ([0, 143], True)],
)  # fmt: skip
def test_a_slurm_job_is_put_back_unless_a_task_failed(launch, tmp_path, statuses, again):
    workdir = tmp_path / "shared" / "run"
    _, ((*_, script),) = launch("slurm.sh", "--", "--config=c.py", f"--workdir={workdir}")
    started = ["python", "-m", "xling_jax.main", "--config=c.py", f"--workdir={workdir}",
               "--processes=auto"]  # fmt: skip
    tasks = [started] * len(statuses)
    calls = batch(tmp_path, script, statuses, SLURM_CPUS_PER_TASK="16")
    assert calls == [*tasks, *[["scontrol", "requeue", "7"]] * again]
    assert batch(tmp_path, script, statuses, SLURM_RESTART_COUNT="20") == tasks
    assert not any(workdir.parent.iterdir())


JOBSET = ["jobset.sh", "n", "--image", "i", "--pods", "2", "--volume", "v"]
ACCELERATOR, TOPOLOGY = (f"cloud.google.com/gke-tpu-{name}" for name in ("accelerator", "topology"))


@pytest.mark.parametrize(
    ("options", "where", "restarts", "limits", "selector"),
    [
        (["--tpu", "tpu-v5-lite-podslice:4x4", "--namespace", "lab"], ["--namespace=lab"], 20,
         {"google.com/tpu": "4"}, {ACCELERATOR: "tpu-v5-lite-podslice", TOPOLOGY: "4x4"}),
        (["--tpu", "tpu-v6e-slice:2x4", "--chips", "8", "--restarts", "3"], [], 3,
         {"google.com/tpu": "8"}, {ACCELERATOR: "tpu-v6e-slice", TOPOLOGY: "2x4"}),
        (["--gpu", "8"], [], 20, {"nvidia.com/gpu": "8"}, None),
    ],
)  # fmt: skip
def test_kubernetes_gets_a_jobset(launch, options, where, restarts, limits, selector):
    yaml = pytest.importorskip("yaml")
    done, calls = launch(
        "jobset.sh", "true", "--image", "repo/xling:1", "--pods", "4", "--volume", "claim",
        *options, "--", *RUN, "--config.a=$$b$(C)",
    )  # fmt: skip
    ((*called, manifest),) = calls
    assert done.returncode == 0 and called == ["kubectl", "create", *where, "-f", "-"]
    assert " ".join(["kubectl", "logs", *where, "-f "]) in done.stderr
    made = yaml.safe_load(manifest)
    assert made["kind"] == "JobSet" and made["metadata"] == {"name": "true"}
    (machines,) = made["spec"]["replicatedJobs"]
    job = machines["template"]["spec"]
    # What ends with an error of its own would do so again.
    lost = {"operator": "NotIn", "values": [75, 134, 137, 143]}
    assert job["podFailurePolicy"] == {"rules": [{"action": "FailJob", "onExitCodes": lost}]}
    ended = {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    assert made["spec"]["failurePolicy"] == {"maxRestarts": restarts, "rules": [ended]}
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (4, 4, "Indexed")
    pod = job["template"]["spec"]
    assert pod.get("nodeSelector") == selector
    (volume,), (container,) = pod["volumes"], pod["containers"]
    assert volume["persistentVolumeClaim"] == {"claimName": "claim"}
    assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/runs"}]
    assert container["image"] == "repo/xling:1"
    assert container["resources"] == {"limits": limits}
    assert container["command"] == ["python", "-m", "xling_jax.main"]
    assert container["args"] == [
        *RUN,
        "--config.a=$$$$b$$(C)",  # what Kubernetes makes $$b$(C) of
        "--workdir=/runs/true",
        "--coordinator=true-machines-0-0.true:8476",
        "--processes=4",
        "--process=$(JOB_COMPLETION_INDEX)",
    ]


@pytest.mark.parametrize(
    "line",
    [
        ["local.sh", "--dry-run", "2", "--", *RUN],
        ["slurm.sh", "--dry-run", "--", *RUN, "--workdir=/x"],
        ["tpu_vm.sh", "create", "pod", *TPU, "--type", "v5litepod-8", "--queued", "--dry-run"],
        ["tpu_vm.sh", "install", "pod", *TPU, "--dry-run"],
        ["tpu_vm.sh", "run", "pod", *TPU, "--dry-run", "--", *RUN],
        ["tpu_vm.sh", "fetch", "pod", *TPU, "--dry-run", "--to", "out"],
        [*JOBSET, "--gpu", "1", "--dry-run", "--", *RUN],
    ],
)
def test_a_dry_run_says_what_it_would_do_and_does_nothing(launch, tmp_path, line):
    done, calls = launch(*line)
    assert done.returncode == 0 and not calls, done.stderr
    assert done.stderr.startswith("+ ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["local.sh", "--", *RUN], "say how many"),
        (["local.sh", "2", *RUN], "write -- between"),
        (["local.sh", "2", "--"], "give the flags of the run"),
        (["local.sh", "99999999999", "--", *RUN], "say how many (1 to 999)"),
        (["slurm.sh", "--", "--config=c.py"], "give --workdir"),
        (["slurm.sh", "--sweep", "row", "--", *RUN, "--workdir=/x"], "write NAME=A,B"),
        (["slurm.sh", "--node", "2", "--", *RUN], "unknown option --node"),
        (["slurm.sh", "--nodes", "x", "--", *RUN, "--workdir=/x"], "and --at-once: give numbers"),
        (["slurm.sh", "--gpus", "0", "--", *RUN, "--workdir=/x"], "and --at-once: give numbers"),
        (["tpu_vm.sh", "create", "pod", "--type", "v5litepod-8"], "give --zone"),
        (["tpu_vm.sh", "create", "pod", *TPU], "give --type"),
        (["tpu_vm.sh", "run", "pod", *TPU], "after --, at least --config"),
        (["tpu_vm.sh", "create", "Pod", *TPU], "a machine's name has"),
        (["tpu_vm.sh", "start", "pod", *TPU], "start: choose create"),
        (["tpu_vm.sh", "create", "pod", "--zone"], "--zone: give a value"),
        (["tpu_vm.sh", "create", "pod", "--kind", "v5litepod-8", *TPU], "unknown option --kind"),
        (["tpu_vm.sh", "fetch", "pod", *TPU], "give --to"),
        (["jobset.sh", "N", *JOBSET[2:], "--gpu", "1", "--", *RUN], "give a name first"),
        ([*JOBSET[:-2], "--gpu", "1", "--", *RUN], "give --volume"),
        ([*JOBSET, "--pods", "x", "--gpu", "1", "--", *RUN], "--pods, --chips and"),
        ([*JOBSET, "--", *RUN], "give --tpu or --gpu\n"),
        ([*JOBSET, "--tpu", "a:1x1", "--gpu", "1", "--", *RUN], "give --tpu or --gpu, not both"),
        ([*JOBSET, "--gpu", "1", "--chips", "8", "--", *RUN], "--chips goes with --tpu"),
        ([*JOBSET, "--tpu", "a", "--", *RUN], "--tpu a: write TYPE:TOPOLOGY"),
        ([*JOBSET, "--gpu", "1", "--"], "give the flags of the run after --"),
        (
            [*JOBSET, "--gpu", "1", "--", *RUN, "--workdir=/x"],
            "leave it out; the workdir is /runs/n",
        ),
        (
            ["tpu_vm.sh", "run", "pod", *TPU, "--", *RUN, "--workdir", "x"],
            "workdir is runs/pod at home",
        ),
        (["local.sh", "2", "--", *RUN, "--process=1"], "--process=1: leave it out"),
        (["slurm.sh", "--", *RUN, "--workdir=/x", "--processes=2"], "--processes=2: leave it out"),
        (
            ["tpu_vm.sh", "run", "pod", *TPU, "--", *RUN, "-coordinator=x:1"],
            "-coordinator=x:1: leave it out",
        ),
        ([*JOBSET, "--gpu", "1", "--", *RUN, "--processes", "2"], "--processes: leave it out"),
    ],
)
def test_what_is_missing_or_unknown_is_named(launch, line, message):
    done, calls = launch(*line)
    assert done.returncode == 2 and message in done.stderr and not calls


SLURM = ["slurm.sh", "--dry-run", "--", *RUN, "--workdir=/x"]


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r", "tab\t", "\x01", "\x7f", "\x85", "\u2028", "\x1b[31m"]
)
@pytest.mark.parametrize(
    "line",
    [
        ["local.sh", "--dry-run", "2", "--", *RUN],
        SLURM,
        ["slurm.sh", "--setup"],
        ["tpu_vm.sh", "run", "pod", *TPU, "--dry-run", "--", *RUN],
        [*JOBSET, "--gpu", "1", "--dry-run", "--", *RUN],
        [*JOBSET, "--namespace"],
    ],
)
def test_control_characters_are_refused_before_anything_is_printed(launch, line, text):
    done, calls = launch(*line, text)
    assert done.returncode == 2 and not calls and not done.stdout
    assert done.stderr.startswith("error: ") and "control characters" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_jobset_of_no_utf_8_is_refused(launch):
    done, calls = launch(*JOBSET, "--gpu", "1", "--dry-run", "--", *RUN, b"\xff")
    assert done.returncode == 2 and "in UTF-8" in done.stderr and not done.stdout and not calls
    done, _ = launch(*JOBSET, "--gpu", "1", "--dry-run", "--", *RUN, "é☃")
    assert done.returncode == 0 and "é☃" in done.stdout


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("seeds=1,,2", "write NAME=A,B"),
        ("seeds=1,2,", "write NAME=A,B"),
        ("seeds=,1", "write NAME=A,B"),
        ("=3", "write NAME=A,B"),
        ("a b=3", "write NAME=A,B"),
        ("seeds=1, 2", "write NAME=A,B"),
        ("seeds=", "write NAME=A,B"),
        ("seeds=1\n2,3", "control characters"),
        ("", "--sweep: give a value"),
        ("seeds=1,2,1", "two jobs would write to /x-1"),
        ("row=a[1],a;1;", "two jobs would write to /x-a_1_"),
        ("pair=en-de,en-fr", "take pair out of --config="),
    ],
)
def test_a_sweep_that_would_lose_values_is_refused(launch, sweep, message):
    done, calls = launch("slurm.sh", "--sweep", sweep, *SLURM[1:])
    assert done.returncode == 2 and message in done.stderr and not calls and not done.stdout
    assert done.stderr.count("\n") == 1


STUB_RUN = """
import os, signal, sys, time
index = sys.argv[-1].split("=")[1]
def asked(*_):
    open(f"asked{index}", "w").close()
    sys.exit(143)
signal.signal(signal.SIGTERM, asked)
print(sys.argv[1:], flush=True)
if "wait" in sys.argv:
    time.sleep(60)
sys.exit(int(os.environ["ENDS"].split(",")[int(index)]))
"""


@pytest.fixture
def python(tmp_path):
    """A command that ends as `ENDS` has it for each process, or with 143 if it is asked to."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}{STUB_RUN}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("ends", "status"), [("0,3", 3), ("143,3", 3), ("75,134", 134), ("2,3", 2), ("0,0", 0)]
)
def test_processes_on_one_host_end_as_one_that_failed_by_itself(launch, python, ends, status):
    given = {"PYTHON": python, "PORT": "4321", "ENDS": ends}
    done, _ = launch("local.sh", "2", "--", "--config=c.py", **given)
    assert done.returncode == status
    for index in (0, 1):
        assert (
            f"['-m', 'xling_jax.main', '--config=c.py', '--coordinator=localhost:4321', "
            f"'--processes=2', '--process={index}']" in done.stdout
        )


@pytest.mark.parametrize(
    ("gpus", "environment", "number"),
    [("0\n1", {}, 2), ("0", {"JAX_PLATFORMS": "cpu"}, 0), ("0\n1", {"CUDA_VISIBLE_DEVICES": ""}, 0),
     ("0", {"CUDA_VISIBLE_DEVICES": "4,5,6"}, 2), ("", {}, 0)],
)  # fmt: skip
def test_processes_on_one_host_have_a_gpu_each(launch, tmp_path, gpus, environment, number):
    """Without a driver nvidia-smi prints its error where the list should be, and fails."""
    answer = f"echo '{gpus}'" if gpus else "echo 'NVIDIA-SMI has failed'; exit 9"
    (tmp_path / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    given = {"JAX_PLATFORMS": "", **environment}
    done, _ = launch("local.sh", "--dry-run", "2", "--", "--config=c.py", **given)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("env CUDA_VISIBLE_DEVICES=") == number
    if number:
        done, _ = launch("local.sh", "--dry-run", "9", "--", "--config=c.py", **given)
        assert done.returncode == 2 and "9 processes, and GPUs " in done.stderr


def heeded():
    """A shell cannot take over a signal that it was started to ignore, as by nohup."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_all_processes_on_one_host(tmp_path, python, number):
    with subprocess.Popen(
        [LAUNCH / "local.sh", "2", "--", "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**ENVIRONMENT, "PYTHON": python},
        cwd=tmp_path,
        preexec_fn=heeded,
    ) as process:
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == 143
    assert (tmp_path / "asked0").exists() and (tmp_path / "asked1").exists()
