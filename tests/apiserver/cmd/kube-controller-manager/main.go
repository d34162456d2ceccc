// Command kube-controller-manager is the upstream controller manager, unchanged.
//
// The tests run it beside the API server, so that a CronJob, its Jobs and their Pods are made, retried and finished by
// the controllers that do so in a cluster.
package main

import (
	"os"
	_ "time/tzdata" // spec.timeZone of a CronJob must not depend on the machine

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
