"""Defaults of pods and of pod templates: `pkg/apis/core/v1/defaults.go`, and `+default` in `core/v1/types.go`."""

from __future__ import annotations

import re

from scanner.model.json import EMPTY, Json, JsonObject, as_object, as_text, dig
from scanner.mutate.defaulting.resources import find_missing, round_resource_lists, sum_containers
from scanner.mutate.walk import (
    Rule,
    Rules,
    apply_to_each,
    apply_within,
    chain_rules,
    fill_absent,
    fill_zero,
    set_member,
)

_CORE = "io.k8s.api.core.v1."
_MODE = 0o644
_HOUR = 3600
_HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory")


def _default_image_pull_policy(value: JsonObject) -> JsonObject:
    if value.get("imagePullPolicy"):
        return value
    return {**value, "imagePullPolicy": choose_pull_policy(as_text(value.get("image")))}


_container = chain_rules(  # SetDefaults_Container, SetDefaults_EphemeralContainer
    _default_image_pull_policy,
    fill_zero(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File"),
)


def _default_volume(value: JsonObject) -> JsonObject:
    """A volume without a source is an empty directory (`SetDefaults_Volume`)."""
    if all(name == "name" or source is None for name, source in value.items()):
        return {**value, "emptyDir": EMPTY}
    image = value.get("image")
    if image is None or dig(image, "pullPolicy"):
        return value
    policy = choose_pull_policy(as_text(dig(image, "reference")))
    return {**value, "image": {**as_object(image), "pullPolicy": policy}}


def _default_requests_from_limits(container: JsonObject) -> JsonObject:
    """A limit of a container without a request is the request, too (`SetDefaults_Pod`)."""
    resources = as_object(container.get("resources"))
    missing = find_missing(resources.get("requests"), as_object(resources.get("limits")))
    if not missing:
        return container
    requests = {**as_object(resources.get("requests")), **missing}
    return {**container, "resources": {**resources, "requests": requests}}


def _default_host_ports(value: JsonObject) -> JsonObject:
    """The ports of containers in the host network become host ports (`defaultHostNetworkPorts`)."""
    if not value.get("hostNetwork"):
        return value
    ports = apply_to_each("ports", _default_host_port)
    return chain_rules(apply_to_each("containers", ports), apply_to_each("initContainers", ports))(value)


def _default_host_port(port: JsonObject) -> JsonObject:
    return port if port.get("hostPort") else set_member(port, "hostPort", port.get("containerPort"))


def _default_huge_page_limits(spec: JsonObject) -> JsonObject:
    """A pod with resources of its own gets the huge page limits of its containers (`defaultHugePagePodLimits`)."""
    resources = as_object(spec.get("resources"))
    limits, requests = as_object(resources.get("limits")), as_object(resources.get("requests"))
    if not limits and not requests:
        return spec
    total = sum_containers(spec, "limits")
    huge_pages = {
        name: amount for name, amount in total.items() if name.startswith(_HUGE_PAGES) and name not in requests
    }
    missing = find_missing(limits, huge_pages)
    return {**spec, "resources": {**resources, "limits": {**limits, **missing}}} if missing else spec


def _default_pod_requests(spec: JsonObject) -> JsonObject:
    """A pod with limits gets the requests of its containers, or its limits where they have none (`defaultPodRequests`)."""
    resources = as_object(spec.get("resources"))
    limits, requests = as_object(resources.get("limits")), as_object(resources.get("requests"))
    if not limits:
        return spec
    total = sum_containers(spec, "requests")
    from_containers = {name: total[name] for name in _POD_LEVEL if name in total}
    from_limits = {
        name: amount for name, amount in limits.items() if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)
    }
    missing = find_missing(requests, from_containers, from_limits)
    return {**spec, "resources": {**resources, "requests": {**requests, **missing}}} if missing else spec


_pod = apply_within(  # SetDefaults_Pod
    "spec",
    chain_rules(
        apply_to_each("containers", _default_requests_from_limits),
        apply_to_each("initContainers", _default_requests_from_limits),
        _default_huge_page_limits,
        _default_pod_requests,
        fill_absent(enableServiceLinks=True),
        _default_host_ports,
    ),
)
_pod_spec = chain_rules(  # SetDefaults_PodSpec
    fill_zero(dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler"),
    fill_absent(securityContext={}, terminationGracePeriodSeconds=30),
    round_resource_lists("overhead"),
)


def _make_mode_rule(value: Json = _MODE) -> Rule:
    return fill_absent(defaultMode=value)


RULES: Rules = {
    f"{_CORE}Pod": _pod,
    f"{_CORE}PodSpec": _pod_spec,
    f"{_CORE}Container": _container,
    f"{_CORE}EphemeralContainer": _container,
    f"{_CORE}ContainerPort": fill_zero(protocol="TCP"),
    f"{_CORE}ResourceRequirements": round_resource_lists("limits", "requests"),
    f"{_CORE}ContainerStatus": round_resource_lists("allocatedResources"),
    f"{_CORE}PodStatus": round_resource_lists("allocatedResources"),
    f"{_CORE}ObjectFieldSelector": fill_zero(apiVersion="v1"),
    f"{_CORE}FileKeySelector": fill_absent(optional=False),
    f"{_CORE}Probe": fill_zero(timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3),
    f"{_CORE}HTTPGetAction": fill_zero(path="/", scheme="HTTP"),
    f"{_CORE}GRPCAction": fill_absent(service=""),
    f"{_CORE}Volume": _default_volume,
    f"{_CORE}SecretVolumeSource": _make_mode_rule(),
    f"{_CORE}ConfigMapVolumeSource": _make_mode_rule(),
    f"{_CORE}DownwardAPIVolumeSource": _make_mode_rule(),
    f"{_CORE}ProjectedVolumeSource": _make_mode_rule(),
    f"{_CORE}ServiceAccountTokenProjection": fill_absent(expirationSeconds=_HOUR),
}


# The default pull policy of an image: Always for the tag `latest`, explicit or implied.
#
# Mirrors `parsers.ParseImageName`, that is `reference.ParseNormalizedNamed` of distribution/reference and the digests
# of go-digest. A text that is not an image reference has no tag.

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"{_HOST}/{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST = re.compile("sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_REGISTRY = "docker.io"


def choose_pull_policy(image: str) -> str:
    """The pull policy of an image: Always for the tag `latest`, else IfNotPresent."""
    return "Always" if _get_tag(image) == "latest" else "IfNotPresent"


def _get_tag(image: str) -> str:
    registry, rest = _split(image)
    path = rest.partition(":")[0]
    match = _REFERENCE.fullmatch(f"{registry}/{rest}")
    if match is None or path != path.lower() or _IDENTIFIER.fullmatch(image):
        return ""
    if match["digest"] and not _DIGEST.fullmatch(match["digest"]):
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def _split(image: str) -> tuple[str, str]:
    """The registry and the rest of a reference (`splitDockerDomain`)."""
    first, slash, rest = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        first, rest = _REGISTRY, image
    return first, rest if first != _REGISTRY or "/" in rest else f"library/{rest}"
