// Command kube-apiserver is the upstream API server, unchanged.
//
// The integration tests ask it what admission really decides. It is built from the module
// k8s.io/kubernetes, because the Kubernetes project publishes no Python package that holds the binary.
package main

import (
	"os"
	_ "time/tzdata" // time zones in CEL expressions must not depend on the machine

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
