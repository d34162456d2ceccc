"""Flags that exclude or need each other, in every command that has both. Arguments have the names in the help: RUN, SCAN."""

from __future__ import annotations

from typing import Final

from scanner.config.combinations import Excludes, Needs, Rule

RULES: Final[tuple[Rule, ...]] = (
    Excludes(
        "--from",
        ("--kubeconfig", "--context", "--as", "--as-group"),
        "--from scans files instead of a cluster",
    ),
    Excludes(
        "--fleet",
        ("--from", "--kubeconfig", "--context", "--cluster-name", "--restored-cluster"),
        "the file names the clusters",
    ),
    Excludes("--index", ("--parallel",), "--index scans one cluster, --parallel all of them"),
    Excludes("--all-namespaces", ("--namespace",), "leave one of them out"),
    Excludes("--kyverno-compat", ("--kyverno-resource-filters",), "only Kyverno's webhook applies resource filters"),
    Excludes("--waivers", ("--waivers-namespace",), "leave one of them out"),
    Excludes("--at", ("SCAN", "--scan"), "leave one of them out"),
    Excludes(
        "RUN",
        ("--expect", "--time-zone", "--tolerance", "--since", "--cluster-name", "--limit"),
        "a number names one run",
    ),
    Needs("--index", "--fleet", belongs=True),
    Needs("--parallel", "--fleet", belongs=True),
    Needs("--kubernetes-version", "--from", "a live cluster reports its own version"),
    Needs("--namespace-label", "--from", "a live cluster has the labels of its namespaces"),
    Needs("--no-cluster-policies", "--policies", "without policy files there is no policy to evaluate"),
    Needs("--allow-network-to", "--allow-network"),
    Needs("--as-group", "--as", belongs=True),
    *(Needs(flag, "--as-user", belongs=True) for flag in ("--as-user-group", "--as-user-uid", "--as-user-extra")),
    Needs("--push-metrics-token-file", "--push-metrics"),
    Needs("--second-opinion-sample", "--second-opinion"),
    Needs("--time-zone", "--expect", "without a schedule no run is expected", belongs=True),
    Needs("--tolerance", "--expect", "without a schedule no run is expected"),
    *(
        Needs(flag, "--oidc-issuer", belongs=True)
        for flag in (
            "--oidc-client-id",
            "--oidc-client-secret-file",
            "--oidc-group",
            "--oidc-groups-claim",
            "--oidc-scope",
        )
    ),
    *(
        Needs(flag, "--assertion-header", belongs=True)
        for flag in ("--assertion-issuer", "--assertion-audience", "--assertion-keys")
    ),
    Needs("--tls-key", "--tls-cert", belongs=True),
)
