//go:build kyverno1.16

package main

import (
	"unsafe"

	policiesv1alpha1 "github.com/kyverno/kyverno/api/policies.kyverno.io/v1alpha1"
	policiesv1beta1 "github.com/kyverno/kyverno/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/libs/globalcontext"
	"github.com/kyverno/kyverno/pkg/cel/libs/http"
	"github.com/kyverno/kyverno/pkg/cel/libs/imagedata"
	"github.com/kyverno/kyverno/pkg/cel/libs/resource"
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

const release = "1.16"

type (
	policyLike       = policiesv1beta1.ValidatingPolicyLike
	clusterPolicy    = policiesv1beta1.ValidatingPolicy
	namespacedPolicy = policiesv1beta1.NamespacedValidatingPolicy
	exception        = policiesv1alpha1.PolicyException
)

// The environment of policies is not exported; see link.s.
//
//go:linkname createBaseVpolEnv github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler.(*compilerImpl).createBaseVpolEnv
func createBaseVpolEnv(receiver unsafe.Pointer, namespace string) (*environment.EnvSet, *compiler.VariablesProvider, error)

func environmentOf(namespace string, _ *cluster) (*environment.EnvSet, *compiler.VariablesProvider, error) {
	return createBaseVpolEnv(nil, namespace)
}

func setContext(*cluster) {}

// libraryValues are the variables of the libraries, which this release binds in each evaluation.
func libraryValues(cluster *cluster) map[string]any {
	return map[string]any{
		compiler.GlobalContextKey: globalcontext.Context{ContextInterface: cluster},
		compiler.HttpKey:          http.Context{ContextInterface: http.NewHTTP(nil)},
		compiler.ImageDataKey:     imagedata.Context{ContextInterface: cluster},
		compiler.ResourceKey:      resource.Context{ContextInterface: cluster},
	}
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
	policies, older := kyverno.Policies().V1beta1(), kyverno.Policies().V1alpha1()
	return webhook.NewController(
		dclient.NewFakeDiscoveryClient(nil), nil, nil, nil, nil,
		registration.MutatingWebhookConfigurations(), registration.ValidatingWebhookConfigurations(),
		legacy.ClusterPolicies(), legacy.Policies(),
		policies.ValidatingPolicies(), policies.NamespacedValidatingPolicies(), older.GeneratingPolicies(),
		policies.ImageValidatingPolicies(), policies.NamespacedImageValidatingPolicies(), older.MutatingPolicies(),
		cluster.Apps().V1().Deployments(), cluster.Core().V1().Secrets(), cluster.Coordination().V1().Leases(), cluster.Rbac().V1().ClusterRoles(),
		server, 10, 443, true, false, false, nil, configuration, "", nil, nil, recorder,
	)
}

func newHandler(engine vpolengine.Engine, context *cluster) handler {
	return vpol.New(engine, context, nil, false, report.NewReportingConfig(), event.NewFake())
}
