package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	celengine "github.com/kyverno/kyverno/pkg/cel/engine"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/autogen"
	vpolcompiler "github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PolicyRequest has policies, exceptions, the objects of a cluster, and the admission requests on which the policies are evaluated.
//
// Inventory are the objects that expressions may read, by the collection in which they are; Entries is the global context,
// Images the answers of registries.
type PolicyRequest struct {
	ID         json.RawMessage           `json:"id,omitempty"`
	Policies   []json.RawMessage         `json:"policies"`
	Exceptions []json.RawMessage         `json:"exceptions,omitempty"`
	Namespaces []corev1.Namespace        `json:"namespaces,omitempty"`
	Requests   []Admission               `json:"requests"`
	Inventory  []Collection              `json:"inventory,omitempty"`
	Entries    map[string]any            `json:"entries,omitempty"`
	Images     map[string]map[string]any `json:"images,omitempty"`
}

// Admission is an admission request. The operation is CREATE by default; the namespace of a Namespace is its own name.
type Admission struct {
	Operation   admissionv1.Operation       `json:"operation,omitempty"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource,omitempty"`
	Name        string                      `json:"name,omitempty"`
	Namespace   string                      `json:"namespace,omitempty"`
	User        authenticationv1.UserInfo   `json:"userInfo"`
	Object      json.RawMessage             `json:"object,omitempty"`
	OldObject   json.RawMessage             `json:"oldObject,omitempty"`
}

// PolicyReply has the compile error of each policy that has one, the variants of the others, and a result for each request.
type PolicyReply struct {
	ID         json.RawMessage     `json:"id,omitempty"`
	Refused    map[string]string   `json:"refused,omitempty"`
	Variants   map[string][]string `json:"variants,omitempty"`
	Results    []Result            `json:"results,omitempty"`
	Unreadable string              `json:"unreadable,omitempty"`
}

// Result has the policies with rules, or the error of the whole evaluation.
type Result struct {
	Error    string            `json:"error"`
	Policies []PolicyWithRules `json:"policies"`
}

// PolicyWithRules is one variant of a policy: "" for the policy as written, else the name of autogen's configuration.
type PolicyWithRules struct {
	Policy  string
	Variant string
	Rules   []Rule
}

// Rule is one entry of a report.
type Rule struct {
	Name    string
	Status  string
	Message string
	Props   map[string]string
}

func answerPolicies(line []byte) any {
	asked := &PolicyRequest{}
	if err := json.Unmarshal(line, asked); err != nil {
		return PolicyReply{ID: asked.ID, Unreadable: err.Error()}
	}
	reply := PolicyReply{ID: asked.ID, Refused: map[string]string{}, Variants: map[string][]string{}}
	cluster := newCluster(asked)
	setContext(cluster)
	exceptions, err := readExceptions(asked.Exceptions)
	if err != nil {
		return PolicyReply{ID: asked.ID, Unreadable: err.Error()}
	}
	var compiled []named
	for _, text := range asked.Policies {
		policy, err := readPolicy(text)
		if err != nil {
			return PolicyReply{ID: asked.ID, Unreadable: err.Error()}
		}
		variants, err := variantsOf(policy, exceptions)
		if err != nil {
			reply.Refused[nameOf(policy)] = err.Error()
			continue
		}
		for _, variant := range variants {
			reply.Variants[nameOf(policy)] = append(reply.Variants[nameOf(policy)], variant.variant)
		}
		compiled = append(compiled, variants...)
	}
	for _, admission := range asked.Requests {
		reply.Results = append(reply.Results, resultOf(cluster, compiled, asked.Namespaces, admission))
	}
	return reply
}

// named is a compiled policy with the name of its variant.
type named struct {
	variant string
	policy  vpolengine.Policy
}

func readPolicy(text []byte) (policyLike, error) {
	kind := metav1.TypeMeta{}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	var policy policyLike = &clusterPolicy{}
	if kind.Kind == "NamespacedValidatingPolicy" {
		policy = &namespacedPolicy{}
	}
	return policy, json.Unmarshal(text, policy)
}

func readExceptions(texts []json.RawMessage) ([]*exception, error) {
	var exceptions []*exception
	for _, text := range texts {
		read := &exception{}
		if err := json.Unmarshal(text, read); err != nil {
			return nil, err
		}
		exceptions = append(exceptions, read)
	}
	return exceptions, nil
}

// variantsOf compiles a policy and all its variants. Kyverno's provider returns them in random order.
func variantsOf(policy policyLike, exceptions []*exception) ([]named, error) {
	provider, err := vpolengine.NewProvider(vpolcompiler.NewCompiler(), []policyLike{policy}, exceptions)
	if err != nil {
		return nil, err
	}
	policies, err := provider.Fetch(context.Background())
	if err != nil {
		return nil, err
	}
	generated, err := autogen.Autogen(policy)
	if err != nil {
		return nil, err
	}
	variants := []named{{policy: policies[0]}}
	for _, other := range policies[1:] {
		for config, rewritten := range generated {
			if reflect.DeepEqual(other.Policy.GetValidatingPolicySpec(), rewritten.Spec) {
				variants = append(variants, named{config, other})
				break
			}
		}
	}
	slices.SortFunc(variants, func(a, b named) int { return strings.Compare(a.variant, b.variant) })
	return variants, nil
}

func nameOf(policy policyLike) string {
	if policy.GetNamespace() == "" {
		return policy.GetName()
	}
	return policy.GetNamespace() + "/" + policy.GetName()
}

func resultOf(cluster *cluster, compiled []named, namespaces []corev1.Namespace, asked Admission) (result Result) {
	result.Policies = []PolicyWithRules{}
	defer func() {
		if trouble := recover(); trouble != nil {
			result.Error = fmt.Sprint("panic: ", trouble)
		}
	}()
	policies := make([]vpolengine.Policy, 0, len(compiled))
	for _, each := range compiled {
		policies = append(policies, each.policy)
	}
	provider := vpolengine.ProviderFunc(func(context.Context) ([]vpolengine.Policy, error) { return policies, nil })
	engine := vpolengine.NewEngine(provider, namespaceResolver(namespaces), matching.NewMatcher())
	request := celengine.RequestFromAdmission(cluster, admissionOf(asked))
	// The webhook of policies in a namespace is called with a predicate for the namespace of the request.
	served := func(policy policyLike) bool {
		return policy.GetNamespace() == "" || policy.GetNamespace() == request.Request.Namespace
	}
	var evaluated []named
	for _, each := range compiled {
		if served(each.policy.Policy) {
			evaluated = append(evaluated, each)
		}
	}
	response, err := engine.Handle(context.Background(), request, served)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	for index, policy := range response.Policies {
		if len(policy.Rules) > 0 {
			result.Policies = append(result.Policies, PolicyWithRules{nameOf(policy.Policy), evaluated[index].variant, rulesOf(policy)})
		}
	}
	return result
}

func namespaceResolver(namespaces []corev1.Namespace) celengine.NamespaceResolver {
	return func(name string) *corev1.Namespace {
		for index := range namespaces {
			if namespaces[index].Name == name {
				return &namespaces[index]
			}
		}
		return nil
	}
}

func rulesOf(policy celengine.ValidatingPolicyResponse) []Rule {
	rules := []Rule{}
	for _, rule := range policy.Rules {
		properties := rule.Properties()
		if properties == nil {
			properties = map[string]string{}
		}
		rules = append(rules, Rule{rule.Name(), string(rule.Status()), rule.Message(), properties})
	}
	return rules
}

func admissionOf(asked Admission) admissionv1.AdmissionRequest {
	dryRun := false
	request := admissionv1.AdmissionRequest{
		UID:                "00000000-0000-0000-0000-000000000000",
		Kind:               asked.Kind,
		Resource:           asked.Resource,
		SubResource:        asked.SubResource,
		RequestKind:        &asked.Kind,
		RequestResource:    &asked.Resource,
		RequestSubResource: asked.SubResource,
		Name:               asked.Name,
		Namespace:          asked.Namespace,
		Operation:          asked.Operation,
		UserInfo:           asked.User,
		Object:             runtime.RawExtension{Raw: given(asked.Object)},
		OldObject:          runtime.RawExtension{Raw: given(asked.OldObject)},
		DryRun:             &dryRun,
	}
	if request.Operation == "" {
		request.Operation = admissionv1.Create
	}
	return request
}

func given(text json.RawMessage) []byte {
	if string(text) == "null" {
		return nil
	}
	return text
}
