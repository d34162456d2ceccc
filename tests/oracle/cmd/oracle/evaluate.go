package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
)

func (c *compiler) replyTo(request *Request) Reply {
	reply := Reply{ID: request.ID}
	expression, err := expressionOf(request)
	if err != nil {
		reply.Unreadable = err.Error()
		return reply
	}
	compiled := c.composited.CompileCELExpression(expression, c.declarations, c.mode)
	if compiled.Error != nil {
		reply.Refused = compiled.Error.Detail
		return reply
	}
	reply.ResultType = compiled.OutputType.String()
	condition := c.composited.CompileCondition([]admissioncel.ExpressionAccessor{expression}, c.declarations, c.mode)
	for _, object := range request.Objects {
		reply.Outcomes = append(reply.Outcomes, evaluate(condition, request, object.Content))
	}
	return reply
}

func evaluate(condition admissioncel.ConditionEvaluator, asked *Request, object *unstructured.Unstructured) (outcome Outcome) {
	recorder := &recorder{decider: asked.Authorizer}
	defer func() {
		if trouble := recover(); trouble != nil {
			outcome = Outcome{Panic: fmt.Sprint(trouble)}
		}
	}()
	namespace, err := namespaceOf(asked)
	if err != nil {
		return Outcome{Panic: err.Error()}
	}
	attributes, inputs := attributesOf(asked, object), admissioncel.OptionalVariableBindings{}
	if asked.Authorizer != nil {
		inputs.Authorizer = recorder
	}
	if asked.Params != nil && asked.Params.Content != nil {
		inputs.VersionedParams = asked.Params.Content
	}
	kind, resource := attributes.GetKind(), attributes.GetResource()
	request := admissioncel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	if object != nil {
		versioned.VersionedObject = object
	}
	if old := asked.OldObject.Content; old != nil {
		versioned.VersionedOldObject = old
	}
	results, left, err := condition.ForInput(context.Background(), versioned, request, inputs, namespace, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return Outcome{Error: err.Error(), Cost: -1, Asked: recorder.asked}
	}
	outcome = Outcome{Cost: celconfig.RuntimeCELCostBudget - left, Asked: recorder.asked}
	if failure := results[0].Error; failure != nil {
		introduction := fmt.Sprintf("expression '%v' resulted in error: ", asked.Expression)
		outcome.Error = strings.TrimPrefix(failure.Error(), introduction)
		return outcome
	}
	value := valueOf(results[0].EvalResult)
	outcome.Value = &value
	return outcome
}

func namespaceOf(asked *Request) (*corev1.Namespace, error) {
	if asked.Namespace.Content == nil {
		return nil, nil
	}
	namespace := &corev1.Namespace{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(asked.Namespace.Content.Object, namespace)
	return admissioncel.CreateNamespaceObject(namespace), err
}

func attributesOf(asked *Request, object *unstructured.Unstructured) admission.Attributes {
	given := asked.Attributes
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Thing"}
	if given.Kind != nil {
		kind = *given.Kind
	}
	resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
	if given.Resource != nil {
		resource = *given.Resource
	}
	operation := admission.Operation(given.Operation)
	if operation == "" {
		operation = admission.Create
	}
	var entity, old runtime.Object
	if object != nil {
		entity = object
	}
	if asked.OldObject.Content != nil {
		old = asked.OldObject.Content
	}
	sender := &user.DefaultInfo{Name: given.User.Name, UID: given.User.UID, Groups: given.User.Groups}
	return admission.NewAttributesRecord(entity, old, kind, given.Namespace, given.Name, resource, given.Subresource,
		operation, optionsOf(operation, given.DryRun), given.DryRun, sender)
}

func optionsOf(operation admission.Operation, dryRun bool) runtime.Object {
	var strategy []string
	if dryRun {
		strategy = []string{metav1.DryRunAll}
	}
	header := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind} }
	switch operation {
	case admission.Create:
		return &metav1.CreateOptions{TypeMeta: header("CreateOptions"), DryRun: strategy}
	case admission.Update:
		return &metav1.UpdateOptions{TypeMeta: header("UpdateOptions"), DryRun: strategy}
	case admission.Delete:
		return &metav1.DeleteOptions{TypeMeta: header("DeleteOptions"), DryRun: strategy}
	}
	return nil
}
