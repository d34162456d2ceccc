package main

import (
	"encoding/json"
)

// Reply is the answer to a request: Refused when the expression does not compile, otherwise one outcome per object.
//
// Panic and Unreadable are no answers of Kubernetes: its code crashed, or the request is malformed.
type Reply struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Refused    string          `json:"refused,omitempty"`
	ResultType string          `json:"resultType,omitempty"`
	Outcomes   []Outcome       `json:"outcomes,omitempty"`
	Panic      string          `json:"panic,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"`
}

// Outcome is a value or an error (its text without the introduction), and the CEL cost, variables included.
//
// Cost is -1 when the cost budget ran out. Asked are the authorization checks, in order.
type Outcome struct {
	Value *Value  `json:"value,omitempty"`
	Error string  `json:"error,omitempty"`
	Cost  int64   `json:"cost"`
	Asked []Check `json:"asked,omitempty"`
	Panic string  `json:"panic,omitempty"`
}
