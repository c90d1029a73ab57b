"""deploy/kubernetes: what Kustomize makes of it is what Kubernetes takes, under the restricted
security standard. No cluster is asked.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadgen.cli import flags, run_settings
from loadgen.version import __version__
from tests.helpers.source import ROOT
from tests.slow.packaging.building import called, linted

FOLDER = ROOT / "deploy/kubernetes"
ROUTES = ("job", "indexed", "rayjob")


def kustomized(route: str, folder: Path = FOLDER) -> str:
    """The YAML that `kubectl apply -k` would send."""
    kubectl = str(Path(sys.executable).with_name("kubectl"))
    return called(kubectl, "kustomize", str(folder / route))


def resources(route: str) -> dict[str, Any]:
    """The resources by their kind."""
    return {resource["kind"]: resource for resource in yaml.safe_load_all(kustomized(route))}


def pods(route: str) -> list[dict[str, Any]]:
    """The specifications of the pods that will be made."""
    if route != "rayjob":
        return [resources(route)["Job"]["spec"]["template"]["spec"]]
    cluster = resources(route)["RayJob"]["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


@pytest.mark.parametrize("route", ROUTES)
def test_kubernetes_takes_the_resources(route: str, tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(kustomized(route))
    linted("kubernetes-validate", "--strict", str(file))


def test_a_field_that_kubernetes_does_not_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(kustomized("job").replace("backoffLimit", "backofflimit"))
    with pytest.raises(AssertionError, match="backofflimit"):
        linted("kubernetes-validate", "--strict", str(file))


@pytest.mark.parametrize("route", ROUTES)
def test_pods_meet_the_restricted_security_standard(route: str) -> None:
    for pod in pods(route):
        assert pod["automountServiceAccountToken"] is False
        user = pod["securityContext"]
        assert (user["runAsNonRoot"], user["runAsUser"]) == (True, 1000)
        assert user["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert "/tmp" in mounts  # the only place of the image where its user writes


@pytest.mark.parametrize("route", ROUTES)
def test_pods_have_whole_cores_and_the_image_of_this_version(route: str) -> None:
    image = f"/loadgen:{__version__}" + ("-ray" if route != "job" else "")
    for pod in pods(route):
        for container in pod["containers"]:
            assert container["image"].endswith(image)
            limits = container["resources"]["limits"]
            assert limits == container["resources"]["requests"]
            assert int(limits["cpu"]) >= 1


def test_a_registry_that_is_written_once_is_that_of_every_job(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "kubernetes")
    file = folder / "job/kustomization.yaml"
    file.write_text(file.read_text().replace("registry.example.com/loadgen", "ghcr.io/me/loadgen"))
    for route, variant in (("job", ""), ("indexed", "-ray")):
        assert f"image: ghcr.io/me/loadgen:{__version__}{variant}\n" in kustomized(route, folder)


@pytest.mark.parametrize("route", ["job", "indexed"])
def test_run_is_a_valid_one_whose_results_stay(route: str, tmp_path: Path) -> None:
    made = resources(route)
    file = tmp_path / "run.yaml"
    file.write_text(made["ConfigMap"]["data"]["run.yaml"])
    (pod,) = pods(route)
    command, *_ = pod["containers"][0]["args"]
    assert command == "run"
    _, (settings,) = run_settings.swept(flags.run_settings(["--config", str(file)]))
    folder = settings.checked().result_dir
    (volume,) = [
        mount["name"]
        for mount in pod["containers"][0]["volumeMounts"]
        if mount["mountPath"] == folder
    ]
    (claim,) = [each for each in pod["volumes"] if each["name"] == volume]
    name = claim["persistentVolumeClaim"]["claimName"]
    assert made["PersistentVolumeClaim"]["metadata"]["name"] == name


def test_every_pod_of_an_indexed_job_knows_the_head_and_the_number_of_pods() -> None:
    made = resources("indexed")
    job, (pod,) = made["Job"]["spec"], pods("indexed")
    env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert job["completionMode"] == "Indexed"
    assert int(env["PODS"]) == job["completions"] == job["parallelism"]
    name, service = made["Job"]["metadata"]["name"], made["Service"]["metadata"]["name"]
    assert env["HEAD"] == f"{name}-0.{service}"
    assert pod["subdomain"] == service
    assert made["Service"]["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}


def test_script_of_the_pods_is_valid_for_a_plain_shell() -> None:
    subprocess.run(["sh", "-n", FOLDER / "indexed/pod.sh"], check=True)
