// The root of the program's module. Each release of Kyverno has its own requirements in releases/, see .ci/kyverno-oracle.
module kube-assay/tests/oracle/kyverno

go 1.26.0
