#!/usr/bin/env python3
"""Renders the Helm chart with several values, and checks what comes out against the schemas of Kubernetes.

    deploy/tests/chart/check.py     needs PyYAML, jsonschema and kubernetes-validate (requirements.txt), and helm or go with sprig
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

CHART = Path(__file__).resolve().parents[2] / "helm/chaingate"
# kubeVersion of the chart, and the newest that is known.
VERSIONS = ["1.25", kubernetes_validate.latest_version()]
# Kinds that come with the Prometheus operator.
CUSTOM = {"ServiceMonitor"}

EVERYTHING = {
    "replicas": 3, "console": True, "existingSecret": "mine", "env": [{"name": "RUST_LOG", "value": "info"}],
    "imagePullSecrets": [{"name": "registry"}], "persistence": {"size": "1Ti", "storageClass": "fast"},
    "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 9, "callsInFlight": 100},
    "serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
    "networkPolicy": {"enabled": True, "callers": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "operators": []},
    "podAnnotations": {"a": "b"}, "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
NOTHING = {"podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}}
WRONG = [{"replicas": 0}, {"persistence": {"size": "much"}}, {"unknown": 1}, {"service": {"type": "Nonsense"}},
         {"serviceMonitor": {"interval": 15}}]


def merged(values, changes):
    both = dict(values)
    for key, value in changes.items():
        both[key] = merged(values[key], value) if isinstance(value, dict) and isinstance(values.get(key), dict) else value
    return both


def rendered(values):
    """The objects that Helm would create."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if shutil.which("helm"):
        command = ["helm", "template", "try", CHART, "--values", "-", "--api-versions", "monitoring.coreos.com/v1"]
        given = values
    else:
        command = ["go", "run", Path(__file__).with_name("render.go"), CHART]
        given = {
            "Values": values, "Release": {"Name": "try", "Service": "Helm", "Namespace": "default"},
            "Chart": {"Name": chart["name"], "AppVersion": chart["appVersion"], "Version": chart["version"]},
        }
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": ""}
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"error: the chart cannot be rendered:\n{done.stderr}")
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


def check(what, values):
    kinds, things = [], rendered(values)
    for thing in things:
        kinds.append(thing["kind"])
        if thing["kind"] in CUSTOM:
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(thing, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"error: {what}: {thing['kind']} is not valid in Kubernetes {version}: {error.message} at {list(error.path)}")
    check_selectors(what, things)
    print(f"{what}: {', '.join(kinds)}")
    return set(kinds)


def check_selectors(what, things):
    """Everything that selects pods selects those of the StatefulSet, and every named port exists."""
    pods = next(thing for thing in things if thing["kind"] == "StatefulSet")["spec"]["template"]
    labels = pods["metadata"]["labels"].items()
    ports = {port["name"] for port in pods["spec"]["containers"][0]["ports"]}
    for thing in things:
        spec = thing.get("spec", {})
        selector = {
            "Service": lambda: spec["selector"], "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"],
            "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"], "StatefulSet": lambda: spec["selector"]["matchLabels"],
        }.get(thing["kind"], dict)()
        named = [port.get("targetPort", port.get("port")) for port in spec.get("ports", [])] if thing["kind"] == "Service" else []
        if thing["kind"] == "NetworkPolicy":
            named = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
        if not selector.items() <= labels or not set(named) <= ports:
            sys.exit(f"error: {what}: {thing['kind']} {thing['metadata']['name']} selects no pod, or names a port that does not exist")


def main():
    schema, defaults = json.loads((CHART / "values.schema.json").read_text()), yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for values in ({}, EVERYTHING, NOTHING):
        jsonschema.validate(merged(defaults, values), schema)
    for values in WRONG:
        if jsonschema.Draft7Validator(schema).is_valid(merged(defaults, values)):
            sys.exit(f"error: values.schema.json accepts {values}")
    usual = check("values.yaml", defaults)
    everything = check("everything", merged(defaults, EVERYTHING))
    check("nothing", merged(defaults, NOTHING))
    missing = {"Secret", "Service", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy"} - usual
    missing |= {"HorizontalPodAutoscaler", "ServiceMonitor"} - everything
    if missing:
        sys.exit(f"error: not rendered: {missing}")


if __name__ == "__main__":
    main()
