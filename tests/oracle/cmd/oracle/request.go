package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Request is an expression and its inputs.
//
// Objects are evaluated one after the other, null is allowed. A request with Params, even null ones, belongs to a policy with a
// paramKind. Results are the allowed types of the expression; none means any. Mode is "stored" (the default) or "new", Version
// the compatibility version, by default 1.36, which limits new expressions only.
type Request struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Expression string          `json:"expression"`
	Variables  []Variable      `json:"variables,omitempty"`
	Objects    []Document      `json:"objects,omitempty"`
	OldObject  Document        `json:"oldObject"`
	Params     *Document       `json:"params,omitempty"`
	Namespace  Document        `json:"namespaceObject"`
	Attributes Attributes      `json:"attributes"`
	Authorizer *Decider        `json:"authorizer,omitempty"`
	Results    []string        `json:"results,omitempty"`
	Mutation   bool            `json:"mutation,omitempty"`
	Mode       string          `json:"mode,omitempty"`
	Version    string          `json:"version,omitempty"`
}

// Variable is a named expression that others read as variables.NAME.
type Variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Attributes are those of the admission request.
type Attributes struct {
	Operation   string                       `json:"operation,omitempty"`
	Name        string                       `json:"name,omitempty"`
	Namespace   string                       `json:"namespace,omitempty"`
	Kind        *schema.GroupVersionKind     `json:"kind,omitempty"`
	Resource    *schema.GroupVersionResource `json:"resource,omitempty"`
	Subresource string                       `json:"subresource,omitempty"`
	DryRun      bool                         `json:"dryRun,omitempty"`
	User        User                         `json:"user"`
}

// User is the sender of the admission request.
type User struct {
	Name   string   `json:"username,omitempty"`
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Decider answers authorization checks: the Allowed user names may do anything, others nothing.
type Decider struct {
	Allowed []string `json:"allowed,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Document is a Kubernetes object, numbers read as the API server reads them; nil for null.
type Document struct {
	Content *unstructured.Unstructured
}

// UnmarshalJSON keeps integers apart from floats.
func (d *Document) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		d.Content = nil
		return nil
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return err
	}
	d.Content = &unstructured.Unstructured{Object: content}
	return nil
}

func readRequest(line []byte) (*Request, error) {
	asked := &Request{}
	err := json.Unmarshal(line, asked)
	if asked.Version == "" {
		asked.Version = "1.36"
	}
	return asked, err
}
