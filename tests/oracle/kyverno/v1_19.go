//go:build kyverno1.19

package main

import (
	"unsafe"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"k8s.io/apiserver/pkg/cel/environment"
)

const release = "1.19"

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

func (c *cluster) GetImageData(image string, _ []remote.Option) (map[string]any, error) {
	return c.imageData(image)
}

func (c *cluster) Clone() libs.Context {
	return c
}
