"""The files under `deploy/` are what they say: their steps are run here as far as that goes without Docker, Kubernetes or Slurm."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.cli.main import VERBS
from corpus.config.check import problems
from corpus.config.load import load_config
from corpus.url.partition import PARTITION_FILES
from tests.demo_corpus import DemoCorpus

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
JOBS = sorted((DEPLOY / "kubernetes").glob("*-job.yaml"))
WORKERS = DEPLOY / "kubernetes" / "workers.yaml"
SCRIPTS = sorted((DEPLOY / "slurm").iterdir())
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "corpus"}


# ---- the image


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of the Dockerfile, in order."""
    lines = [
        line for line in (DEPLOY / "Dockerfile").read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")
    ]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def copied() -> list[str]:
    return [source for kind, rest in instructions() if kind == "COPY" for source in rest.split()[:-1]]


def test_the_image_is_made_of_what_is_there_and_ends_unprivileged() -> None:
    """Sources exist and reach the build, the base is a Python we support, nothing runs after the user is 1000."""
    steps = instructions()
    kinds = [kind for kind, _ in steps]
    assert set(kinds) <= {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENTRYPOINT", "CMD"}
    base = re.fullmatch(r"python:(3\.\d+)-slim", dict(steps)["FROM"])
    assert base
    assert f"Python :: {base[1]}" in (ROOT / "pyproject.toml").read_text("utf-8")
    for source in copied():
        assert (ROOT / source).exists(), source
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert sorted(line[1:] for line in ignore if line.startswith("!")) == sorted(set(copied()))
    assert "*" in ignore
    assert [rest for kind, rest in steps if kind == "USER"] == ["1000:1000"]
    assert "RUN" not in kinds[kinds.index("USER") :]
    assert "COPY" not in kinds[kinds.index("USER") :]
    assert json.loads(dict(steps)["ENTRYPOINT"]) == ["corpus"]


def test_the_image_installs_the_pinned_packages_and_nothing_else() -> None:
    """The only packages are those of requirements.txt (which hold S3 too), at the versions these tests run with; no index is named."""
    installs = [rest for kind, rest in instructions() if kind == "RUN" and "pip" in rest]
    assert [re.findall(r"pip install ([^&]+)", rest)[0].strip() for rest in installs] == ["-r requirements.txt", "--no-deps ."]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    pins = dict(re.split(r"(?:\[[a-z,]+\])?==", line.partition(";")[0].strip()) for line in lines if line.strip())
    assert "boto3" in pins
    assert {name: version(name) for name in pins} == pins
    assert "index" not in (DEPLOY / "Dockerfile").read_text("utf-8")


READ_ONLY = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
grep -v " $1 " /proc/self/mounts | cut -d" " -f2 | sort -u | while read -r at; do mount -o remount,bind,ro "$at" 2>/dev/null || true; done
shift
exec setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --inh-caps=+dac_read_search --ambient-caps=+dac_read_search "$@"
"""
"""Everything but $1 becomes read-only, for this process only; uid 1000 may read what root may (an interpreter in /root), never write it."""


def read_only(folder: Path, *command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(folder), *command]
    return subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(
    os.getuid() != 0
    or not shutil.which("setpriv")
    or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
    reason="needs root and mount namespaces",
)
def test_the_whole_job_runs_as_uid_1000_on_a_read_only_root(tmp_path: Path) -> None:
    """What the Dockerfile copies, with what it sets, crawls, measures, clusters and releases, and writes nowhere but /data."""
    app, data = tmp_path / "app", tmp_path / "data"
    app.mkdir()
    for source in copied():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile
        copy(ROOT / source, app / source)
    data.mkdir()
    os.chown(data, 1000, 1000)
    image = {
        name: value
        for kind, rest in instructions()
        if kind == "ENV"
        for name, value in (part.split("=") for part in shlex.split(rest))
    }
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(app),
        **image,
        **{name: str(data) for name, value in image.items() if value == "/data"},
    }
    refused = read_only(data, "sh", "-c", f"touch {data}/here && ! touch {app}/there && ! touch /var/tmp/there && id -u", env=env)
    assert (refused.returncode, refused.stdout) == (0, "1000\n"), refused.stderr
    done = read_only(data, sys.executable, "-m", "corpus", "demo", "--dir", str(data / "demo"), env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list((data / "demo" / "releases" / "v1" / "data").rglob("*.parquet"))
    assert {path.stat().st_uid for path in (data / "demo").rglob("*")} == {1000}


# ---- compose


def test_compose_services_fit_together() -> None:
    """Pinned images, no privileges, every dependency and volume declared, each rank of the world once, and verbs that exist."""
    parts = {"s3", "bucket", "postgres", "worker-0", "worker-1", "measure-0", "measure-1", "export"}
    assert set(COMPOSE["services"]) == parts
    assert COMPOSE["services"]["postgres"]["image"] == "postgres:15"
    assert re.fullmatch(r"motoserver/moto:\d+\.\d+\.\d+", COMPOSE["services"]["s3"]["image"])
    assert COMPOSE["services"]["s3"]["image"].endswith(version("moto"))
    named = set()
    for name, service in COMPOSE["services"].items():
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"]) - {name}
        named |= {volume.split(":")[0] for volume in service.get("volumes", []) if not volume.startswith(".")}
    assert named == set(COMPOSE["volumes"])
    for name, service in OURS.items():
        assert (service["user"], service["read_only"], service["cap_drop"]) == ("1000:1000", True, ["ALL"])
        assert (
            DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]
        ).resolve() == DEPLOY / "Dockerfile"
        if name != "bucket":
            assert service["command"][0] in VERBS
            assert service["command"][1:3] == ["-c", "/etc/corpus/corpus.toml"]
    ranks = [service["command"] for name, service in OURS.items() if name.startswith("measure")]
    assert [command[-4:] for command in ranks] == [["--rank", str(n), "--world", str(len(ranks))] for n in range(len(ranks))]
    data = [next(v for v in service["volumes"] if v.endswith(":/data")) for name, service in OURS.items() if name != "bucket"]
    assert len(set(data)) == len(data), "no two of them share a working folder"
    assert OURS["worker-0"]["command"] == OURS["worker-1"]["command"]
    password = COMPOSE["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert {service["environment"]["PGPASSWORD"] for service in OURS.values()} == {password}


def test_compose_configuration_lacks_only_the_contact() -> None:
    """Every key is known, and a contact is all that `check` asks for."""
    config = load_config(DEPLOY / "compose" / "corpus.toml", environment={})
    assert {problem.key for problem in problems(config, fetching=True)} == {"crawl.contact"}
    assert config.store.s3_endpoint == "http://s3:5000"
    assert config.local == Path("/data/local")
    assert config.store.frontier == "postgresql://corpus@postgres/corpus"


# ---- jobs


def pod(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(job, pod, its only container)."""
    job = yaml.safe_load(path.read_text("utf-8"))
    template = job["spec"]["template"]["spec"]
    (container,) = template["containers"]
    return job["spec"], template, container


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_kubernetes_jobs_are_unprivileged_and_whole(path: Path) -> None:
    """A Job of batch/v1 as uid 1000 on a read-only root; every mount has its volume, /data is one of them, memory is bounded."""
    document = yaml.safe_load(path.read_text("utf-8"))
    assert (document["apiVersion"], document["kind"]) == ("batch/v1", "Job")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", document["metadata"]["name"])
    job, template, container = pod(path)
    assert set(job) <= {
        "completionMode",
        "completions",
        "parallelism",
        "backoffLimit",
        "backoffLimitPerIndex",
        "ttlSecondsAfterFinished",
        "template",
    }
    assert template["restartPolicy"] == "Never"
    assert (template["securityContext"]["runAsUser"], template["securityContext"]["runAsNonRoot"]) == (1000, True)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "config": "/etc/corpus",
        "data": "/data",
    }
    assert {volume["name"] for volume in template["volumes"]} == {"config", "data"}
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]


def test_what_the_manifests_ask_for_is_made_by_the_commands_beside_them() -> None:
    """Secrets and configuration that a pod names are those that the README makes, and no pod waits for a volume that nobody makes."""
    told = (DEPLOY / "README.md").read_text("utf-8")
    for path in (WORKERS, *JOBS):
        for document in yaml.safe_load_all(path.read_text("utf-8")):
            spec = document["spec"].get("template", {}).get("spec")
            for source in () if spec is None else spec["containers"][0]["envFrom"]:
                assert f"kubectl create secret generic {source['secretRef']['name']} " in told, path.name
            for volume in () if spec is None else spec["volumes"]:
                if "configMap" in volume:
                    assert f"kubectl create configmap {volume['configMap']['name']} " in told, path.name
                else:
                    assert set(volume) == {"name", "emptyDir"}, path.name


def test_kubernetes_workers_drain_before_they_are_killed() -> None:
    """A Deployment of apps/v1 as uid 1000 on a read-only root; a pod has longer to go than a drain and a last upload take, the process
    gets the signal itself, and two replicas are never taken away at once."""
    deployment, budget = yaml.safe_load_all(WORKERS.read_text("utf-8"))
    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")
    assert (budget["apiVersion"], budget["kind"]) == ("policy/v1", "PodDisruptionBudget")
    template = deployment["spec"]["template"]
    assert (
        deployment["spec"]["selector"]["matchLabels"]
        == template["metadata"]["labels"]
        == budget["spec"]["selector"]["matchLabels"]
    )
    pod_spec = template["spec"]
    (container,) = pod_spec["containers"]
    assert (pod_spec["securityContext"]["runAsUser"], pod_spec["securityContext"]["runAsNonRoot"]) == (1000, True)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod_spec["terminationGracePeriodSeconds"] >= 60
    assert container["args"][0] in VERBS
    assert "command" not in container, "no shell between the kubelet and the worker"
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod_spec["volumes"]}
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    assert deployment["spec"]["replicas"] <= PARTITION_FILES


def shim(folder: Path) -> dict[str, str]:
    """An environment whose `corpus` is ours."""
    folder.mkdir(exist_ok=True)
    (folder / "corpus").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m corpus "$@"\n', "utf-8")
    (folder / "corpus").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def test_the_indexed_job_is_as_many_ranks_as_it_has_completions(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """`completions` is the world; the container's own command, with an index, is that rank of it on a real corpus."""
    job, _, container = pod(DEPLOY / "kubernetes" / "process-job.yaml")
    assert job["completionMode"] == "Indexed"
    assert job["completions"] >= job["parallelism"]
    (script,) = container["args"]
    assert f"--world {job['completions']} " in script
    assert f"engine.workers={container['resources']['requests']['cpu']}" in script
    folder = demo_corpus.copy(tmp_path / "c")
    command = [*container["command"], script.replace("/etc/corpus", str(folder)) + " --json"]
    env = shim(tmp_path / "bin") | {"JOB_COMPLETION_INDEX": str(job["completions"] - 1)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["rank"], told["world"], told["unmeasured"]) == (15, 16, 0)


# ---- Slurm

SBATCH = """#!/bin/sh
# a batch system of one machine: every element at once, one after the other; afterok is kept because a failure ends it all
set -eu
array=0-0
for word in "$@"; do case "$word" in --array=*) array=${word#--array=};; --dependency=*) echo "$word" >> "$LOG";; esac; done
while case "$1" in -*) true;; *) false;; esac; do shift; done
script=$1; shift
for n in $(seq "${array%-*}" "${array#*-}"); do
  echo "$(basename "$script") $n $*" >> "$LOG"
  SLURM_ARRAY_TASK_ID=$n SLURM_CPUS_PER_TASK=1 sh "$script" "$@" >&2
done
wc -l < "$LOG"
"""


def test_slurm_scripts_measure_cluster_and_release(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """submit.sh over a stand-in for sbatch: every rank of the array, then dedup, then export, each after the one before."""
    folder = demo_corpus.copy(tmp_path / "c")
    for name in ("releases", "commits/map", "commits/dedup", "commits/release", "snapshots", "documents"):
        shutil.rmtree(folder / name)
    env = shim(tmp_path / "bin") | {"LOG": str(tmp_path / "log")}
    (tmp_path / "bin" / "sbatch").write_text(SBATCH, "utf-8")
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    config = str(folder / "corpus.toml")
    done = subprocess.run(
        [str(DEPLOY / "slurm" / "submit.sh"), config, "2"], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.fullmatch(r"process 2, dedup 4, export 6\n", done.stdout)
    assert (tmp_path / "log").read_text("utf-8").splitlines() == [
        f"process.sbatch 0 {config} 2",
        f"process.sbatch 1 {config} 2",
        "--dependency=afterok:2",
        f"release.sbatch 0 {config} dedup",
        "--dependency=afterok:4",
        f"release.sbatch 0 {config} export",
    ]
    assert (folder / "releases" / "v1" / "manifest.json").read_bytes() == (
        demo_corpus.folder / "releases" / "v1" / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_slurm_scripts_are_shell(path: Path) -> None:
    """POSIX shell that parses and stops at the first error; #SBATCH lines stand before any command, as Slurm reads them."""
    subprocess.run(["sh", "-n", str(path)], check=True)
    text = path.read_text("utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -eu\n" in text
    lines = text.splitlines()
    assert not any(line.startswith("#SBATCH") for line in lines[lines.index("set -eu") :])


def test_the_readme_says_what_was_run() -> None:
    """Every file is named there, and every one is marked as run or as not run."""
    text = (DEPLOY / "README.md").read_text("utf-8")
    for path in sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.name != "README.md"):
        row = next((line for line in text.splitlines() if line.startswith(f"| `{path.relative_to(DEPLOY)}`")), "")
        assert row, path
