//go:build kyverno1.18

package main

import (
	"unsafe"

	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/client/informers/externalversions"
	"github.com/kyverno/kyverno/pkg/clients/dclient"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/controllers"
	"github.com/kyverno/kyverno/pkg/controllers/webhook"
	"github.com/kyverno/kyverno/pkg/event"
	"github.com/kyverno/kyverno/pkg/utils/report"
	"github.com/kyverno/kyverno/pkg/webhooks/resource/vpol"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/informers"
)

const release = "1.18"

type (
	policyLike       = policiesv1beta1.ValidatingPolicyLike
	clusterPolicy    = policiesv1beta1.ValidatingPolicy
	namespacedPolicy = policiesv1beta1.NamespacedValidatingPolicy
	exception        = policiesv1beta1.PolicyException
)

// The environment of policies is not exported; see link.s.
//
//go:linkname createBaseVpolEnv github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler.(*compilerImpl).createBaseVpolEnv
func createBaseVpolEnv(receiver unsafe.Pointer, context libs.Context, namespace string) (*environment.EnvSet, *compiler.VariablesProvider, error)

func environmentOf(namespace string, cluster *cluster) (*environment.EnvSet, *compiler.VariablesProvider, error) {
	return createBaseVpolEnv(nil, cluster, namespace)
}

func setContext(cluster *cluster) {
	libs.LibraryContext = cluster
}

// libraryValues is empty: this release binds the variables of the libraries in the environment.
func libraryValues(*cluster) map[string]any {
	return map[string]any{}
}

func exceptionValue() any {
	return libs.Exception{AllowedImages: []string{}, AllowedValues: []string{}}
}

func (c *cluster) GetImageData(image string) (map[string]any, error) {
	return c.imageData(image)
}

func newWebhookController(
	cluster informers.SharedInformerFactory, kyverno externalversions.SharedInformerFactory, server string,
	configuration config.Configuration, recorder webhook.StateRecorder,
) controllers.Controller {
	registration, legacy := cluster.Admissionregistration().V1(), kyverno.Kyverno().V1()
	policies := kyverno.Policies().V1beta1()
	return webhook.NewController(
		dclient.NewFakeDiscoveryClient(nil), nil, nil, nil, nil,
		registration.MutatingWebhookConfigurations(), registration.ValidatingWebhookConfigurations(),
		legacy.ClusterPolicies(), legacy.Policies(),
		policies.ValidatingPolicies(), policies.NamespacedValidatingPolicies(), policies.GeneratingPolicies(),
		policies.NamespacedGeneratingPolicies(), policies.ImageValidatingPolicies(), policies.NamespacedImageValidatingPolicies(),
		policies.MutatingPolicies(), policies.NamespacedMutatingPolicies(),
		cluster.Apps().V1().Deployments(), cluster.Core().V1().Secrets(), cluster.Coordination().V1().Leases(), cluster.Rbac().V1().ClusterRoles(),
		server, 10, 443, true, false, nil, configuration, "", recorder,
	)
}

func newHandler(engine vpolengine.Engine, context *cluster) handler {
	report.NewReportingConfig(nil)
	return vpol.New(engine, context, nil, false, event.NewFake())
}
