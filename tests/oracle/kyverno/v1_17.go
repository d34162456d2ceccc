//go:build kyverno1.17

package main

import (
	"unsafe"

	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/libs/globalcontext"
	"github.com/kyverno/kyverno/pkg/cel/libs/http"
	"github.com/kyverno/kyverno/pkg/cel/libs/imagedata"
	"github.com/kyverno/kyverno/pkg/cel/libs/resource"
	"k8s.io/apiserver/pkg/cel/environment"
)

const release = "1.17"

type (
	policyLike       = policiesv1beta1.ValidatingPolicyLike
	clusterPolicy    = policiesv1beta1.ValidatingPolicy
	namespacedPolicy = policiesv1beta1.NamespacedValidatingPolicy
	exception        = policiesv1beta1.PolicyException
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
