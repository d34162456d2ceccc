package main

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Check is what an expression asked the authorizer.
type Check struct {
	User          string   `json:"user"`
	Groups        []string `json:"groups"`
	Verb          string   `json:"verb"`
	Path          string   `json:"path"`
	Group         string   `json:"group"`
	Version       string   `json:"version"`
	Resource      string   `json:"resource"`
	Subresource   string   `json:"subresource"`
	Namespace     string   `json:"namespace"`
	Name          string   `json:"name"`
	FieldSelector []string `json:"fieldSelector"`
	LabelSelector []string `json:"labelSelector"`
	IsResource    bool     `json:"isResource"`
}

// recorder decides and remembers what it was asked.
type recorder struct {
	decider *Decider
	asked   []Check
}

func (r *recorder) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked = append(r.asked, checkOf(asked))
	var err error
	if r.decider.Error != "" {
		err = errors.New(r.decider.Error)
	}
	if err == nil && slices.Contains(r.decider.Allowed, asked.GetUser().GetName()) {
		return authorizer.DecisionAllow, r.decider.Reason, nil
	}
	return authorizer.DecisionDeny, r.decider.Reason, err
}

func checkOf(asked authorizer.Attributes) Check {
	return Check{
		User:          asked.GetUser().GetName(),
		Groups:        asked.GetUser().GetGroups(),
		Verb:          asked.GetVerb(),
		Path:          asked.GetPath(),
		Group:         asked.GetAPIGroup(),
		Version:       asked.GetAPIVersion(),
		Resource:      asked.GetResource(),
		Subresource:   asked.GetSubresource(),
		Namespace:     asked.GetNamespace(),
		Name:          asked.GetName(),
		FieldSelector: fieldRequirements(asked),
		LabelSelector: labelRequirements(asked),
		IsResource:    asked.IsResourceRequest(),
	}
}

func fieldRequirements(asked authorizer.Attributes) []string {
	requirements, err := asked.GetFieldSelector()
	if err != nil {
		return []string{"unparsable"}
	}
	var texts []string
	for _, requirement := range requirements {
		texts = append(texts, requirement.Field+string(requirement.Operator)+requirement.Value)
	}
	return texts
}

func labelRequirements(asked authorizer.Attributes) []string {
	requirements, err := asked.GetLabelSelector()
	if err != nil {
		return []string{"unparsable"}
	}
	var texts []string
	for _, requirement := range requirements {
		texts = append(texts, requirement.String())
	}
	return texts
}
