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
STUB = f"""#!{sys.executable}
import json, os, sys
said = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
with open(os.environ["RECORD"], "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], said]) + "\\n")
if "describe" in sys.argv:
    calls = open(os.environ["RECORD"]).read().count("describe")
    print("ACTIVE" if calls > 1 else os.environ.get("STATE", "WAITING_FOR_RESOURCES"))
"""


@pytest.fixture
def launch(tmp_path):
    """Runs a launcher where the commands of the cloud only record what they were given."""
    record, folder = tmp_path / "calls", tmp_path / "bin"
    folder.mkdir()
    for name in ("gcloud", "sbatch", "kubectl"):
        (folder / name).write_text(STUB)
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record)}
    environment |= {"POLL_SECONDS": "0"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)

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


def test_a_tpu_pod_is_made_installed_run_read_and_deleted(launch):
    done, calls = launch("tpu_vm.sh", "create", "pod", *TPU, "--type", "v5litepod-16", "--spot")
    assert calls == [
        ["gcloud", *MACHINE, "create", "pod", "--version=v2-alpha-tpuv5-lite",
         "--accelerator-type=v5litepod-16", *WHERE, "--spot", ""]
    ]  # fmt: skip
    done, calls = launch("tpu_vm.sh", "install", "pod", *TPU, "--share", "10.0.0.2:/runs")
    assert [call[4] for call in calls] == ["scp", "ssh", "ssh"]
    assert all("--worker=all" in call for call in calls)
    assert "pip install" in calls[1][-2] and "mount -t nfs 10.0.0.2:/runs ~/runs" in calls[2][-2]
    done, calls = launch("tpu_vm.sh", "run", "pod", *TPU, "--", *RUN)
    (call,) = calls
    assert call[4:6] == ["ssh", "pod"] and "--worker=all" in call
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
    done, calls = launch("tpu_vm.sh", "logs", "pod", *TPU)
    assert "tail -n 50 -F ~/pod.log" in calls[0][-2] and "--worker=0" in calls[0]
    done, calls = launch("tpu_vm.sh", "fetch", "pod", *TPU, "--to", "out")
    assert [call[4] for call in calls] == ["ssh", "scp"] and "pod:pod.tar.gz" in calls[1]
    done, calls = launch("tpu_vm.sh", "delete", "pod", *TPU)
    assert calls == [["gcloud", *MACHINE, "delete", "pod", *WHERE, "--quiet", ""]]


def test_queued_machines_are_waited_for(launch):
    asked = ["create", "pod", *TPU, "--type", "v5litepod-16", "--queued"]
    done, calls = launch("tpu_vm.sh", *asked)
    assert done.returncode == 0 and "WAITING_FOR_RESOURCES" in done.stderr
    assert [call[3:5] for call in calls] == [
        ["queued-resources", "create"],
        ["queued-resources", "describe"],
        ["queued-resources", "describe"],
    ]
    done, calls = launch("tpu_vm.sh", *asked, STATE="FAILED")
    assert done.returncode == 2 and "the queued resource is FAILED" in done.stderr
    done, calls = launch("tpu_vm.sh", "delete", "pod", *TPU, "--queued")
    assert calls[0][3:5] == ["queued-resources", "delete"] and "--force" in calls[0]


def test_slurm_gets_a_job_for_each_value_of_a_sweep(launch, tmp_path):
    flags = ["--config=configs/fake_english.py:scale=paper", f"--workdir={tmp_path}/shared/run"]
    done, calls = launch(
        "slurm.sh", "--nodes", "2", "--gpus", "4", "--sweep", "row=0,inv-order[fake]",
        "--at-once", "1", "--sbatch", "--partition=gpu", "--setup", ": $UNSET", "--", *flags,
        RUN[1],
    )  # fmt: skip
    ((name, *arguments, script),) = calls
    assert name == "sbatch" and {
        "--nodes=2",
        "--ntasks-per-node=4",
        "--gpus-per-node=4",
        "--array=0-1%1",
        "--partition=gpu",
        "--requeue",
        "--signal=TERM@120",
    } <= set(arguments)
    for task, (value, folder) in enumerate(
        [("0", "run-0"), ("inv-order[fake]", "run-inv-order_fake_")]
    ):
        ran = batch(tmp_path, script, [0], SLURM_ARRAY_TASK_ID=str(task))
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
    environment = {**os.environ, "RECORD": str(record), "SLURM_JOB_ID": "7", **environment,
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


def test_kubernetes_gets_a_jobset(launch):
    yaml = pytest.importorskip("yaml")
    given = ["true", "--image", "repo/xling:1", "--pods", "4", "--volume", "runs"]
    done, calls = launch(
        "jobset.sh", *given, "--tpu", "tpu-v5-lite-podslice:4x4", "--namespace", "lab", "--", *RUN
    )
    ((name, *arguments, manifest),) = calls
    assert [name, *arguments] == ["kubectl", "create", "--namespace=lab", "-f", "-"]
    made = yaml.safe_load(manifest)
    assert made["metadata"] == {"name": "true"}
    job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (made["kind"], job["completions"], job["completionMode"]) == ("JobSet", 4, "Indexed")
    pod = job["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4"
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"google.com/tpu": "4"}
    assert container["args"] == [
        *RUN,
        "--workdir=/runs/true",
        "--coordinator=true-machines-0-0.true:8476",
        "--processes=4",
        "--process=$(JOB_COMPLETION_INDEX)",
    ]
    done, calls = launch("jobset.sh", *given, "--gpu", "8", "--", *RUN)
    pod = yaml.safe_load(calls[0][-1])["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "nodeSelector" not in pod["spec"]


@pytest.mark.parametrize(
    "line",
    [
        ["local.sh", "--dry-run", "2", "--", *RUN],
        ["slurm.sh", "--dry-run", "--", *RUN, "--workdir=/x"],
        ["tpu_vm.sh", "create", "pod", *TPU, "--type", "v5litepod-8", "--queued", "--dry-run"],
        ["tpu_vm.sh", "install", "pod", *TPU, "--dry-run"],
        ["tpu_vm.sh", "run", "pod", *TPU, "--dry-run", "--", *RUN],
        ["tpu_vm.sh", "fetch", "pod", *TPU, "--dry-run", "--to", "out"],
        ["jobset.sh", "n", "--image", "i", "--pods", "2", "--volume", "v", "--gpu", "1",
         "--dry-run", "--", *RUN],
    ],
)  # fmt: skip
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
        (["local.sh", "99999999999", "--", *RUN], "say how many (1 to 999)"),
        (["slurm.sh", "--", "--config=c.py"], "give --workdir"),
        (["slurm.sh", "--sweep", "row", "--", *RUN, "--workdir=/x"], "write NAME=A,B"),
        (["slurm.sh", "--node", "2", "--", *RUN], "unknown option --node"),
        (["tpu_vm.sh", "create", "pod", "--type", "v5litepod-8"], "give --zone"),
        (["tpu_vm.sh", "create", "pod", *TPU], "give --type"),
        (["tpu_vm.sh", "run", "pod", *TPU], "after --, at least --config"),
        (["tpu_vm.sh", "create", "Pod", *TPU], "a machine's name has"),
        (["tpu_vm.sh", "start", "pod", *TPU], "start: choose create"),
        (["tpu_vm.sh", "create", "pod", "--zone"], "--zone: give a value"),
        (["jobset.sh", "n", "--image", "i", "--pods", "2", "--gpu", "1", "--", *RUN], "--volume"),
        (
            ["jobset.sh", "n", "--image", "i", "--pods", "2", "--volume", "v", "--", *RUN],
            "--tpu or",
        ),
    ],
)
def test_what_is_missing_or_unknown_is_named(launch, line, message):
    done, calls = launch(*line)
    assert done.returncode == 2 and message in done.stderr and not calls


JOBSET = ["jobset.sh", "n", "--image", "i", "--pods", "2", "--volume", "v", "--gpu", "1"]
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
        [*JOBSET, "--dry-run", "--", *RUN],
        [*JOBSET, "--namespace"],
    ],
)
def test_control_characters_are_refused_before_anything_is_printed(launch, line, text):
    done, calls = launch(*line, text)
    assert done.returncode == 2 and not calls and not done.stdout
    assert done.stderr.startswith("error: ") and "control characters" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_jobset_of_no_utf_8_is_refused(launch):
    done, calls = launch(*JOBSET, "--dry-run", "--", *RUN, b"\xff")
    assert done.returncode == 2 and "in UTF-8" in done.stderr and not done.stdout and not calls
    done, _ = launch(*JOBSET, "--dry-run", "--", *RUN, "é☃")
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
        env={**os.environ, "PYTHON": python},
        cwd=tmp_path,
        preexec_fn=heeded,
    ) as process:
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == 143
    assert (tmp_path / "asked0").exists() and (tmp_path / "asked1").exists()
