package main

import (
	"context"
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// ExpressionRequest is an expression of a policy, in a namespace or without one, with the variables that it may read.
//
// Objects are the values of `object`; the other inputs are the same for all of them.
type ExpressionRequest struct {
	ID         json.RawMessage                    `json:"id,omitempty"`
	Namespace  string                             `json:"namespace,omitempty"`
	Expression string                             `json:"expression"`
	Variables  []admissionregistrationv1.Variable `json:"variables,omitempty"`
	Objects    []json.RawMessage                  `json:"objects,omitempty"`
	OldObject  json.RawMessage                    `json:"oldObject,omitempty"`
	Request    json.RawMessage                    `json:"request,omitempty"`
	NamespaceO json.RawMessage                    `json:"namespaceObject,omitempty"`
	PolicyRequest
}

// ExpressionReply is the compile error, or the type of the expression and one outcome per object.
type ExpressionReply struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Refused    string          `json:"refused,omitempty"`
	ResultType string          `json:"resultType,omitempty"`
	Outcomes   []Outcome       `json:"outcomes,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"`
}

// Outcome is a value or the text of an error, and the cost in CEL's units.
type Outcome struct {
	Value *Value  `json:"value,omitempty"`
	Error string  `json:"error,omitempty"`
	Cost  *uint64 `json:"cost,omitempty"`
}

// expressions keeps the environments without variables, which are slow to make.
type expressions struct {
	cluster *cluster
	kept    map[string]*cel.Env
}

func newExpressions() *expressions {
	return &expressions{cluster: newCluster(nil), kept: map[string]*cel.Env{}}
}

func (e *expressions) answer(line []byte) any {
	asked := &ExpressionRequest{}
	if err := json.Unmarshal(line, asked); err != nil {
		return ExpressionReply{Unreadable: err.Error()}
	}
	e.cluster.collections, e.cluster.entries, e.cluster.images = asked.Inventory, asked.Entries, asked.Images
	reply := ExpressionReply{ID: asked.ID}
	env, variables, refused, err := e.environment(asked)
	if err != nil {
		reply.Unreadable = err.Error()
		return reply
	}
	if refused != nil {
		reply.Refused = refused.Error()
		return reply
	}
	ast, issues := env.Compile(asked.Expression)
	if err := issues.Err(); err != nil {
		reply.Refused = err.Error()
		return reply
	}
	program, err := env.Program(ast)
	if err != nil {
		reply.Refused = err.Error()
		return reply
	}
	reply.ResultType = ast.OutputType().String()
	for _, object := range asked.Objects {
		outcome, err := e.outcome(asked, program, variables, object)
		if err != nil {
			return ExpressionReply{ID: asked.ID, Unreadable: err.Error()}
		}
		reply.Outcomes = append(reply.Outcomes, outcome)
	}
	return reply
}

func (e *expressions) environment(asked *ExpressionRequest) (*cel.Env, map[string]cel.Program, error, error) {
	if env, kept := e.kept[asked.Namespace]; kept && len(asked.Variables) == 0 {
		return env, nil, nil, nil
	}
	set, provider, err := environmentOf(asked.Namespace, e.cluster)
	if err != nil {
		return nil, nil, nil, err
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(asked.Variables) == 0 {
		e.kept[asked.Namespace] = env
		return env, nil, nil, nil
	}
	variables, faults := compiler.CompileVariables(field.NewPath("spec", "variables"), env, provider, asked.Variables...)
	if faults != nil {
		return nil, nil, faults.ToAggregate(), nil
	}
	return env, variables, nil, nil
}

func (e *expressions) outcome(asked *ExpressionRequest, program cel.Program, variables map[string]cel.Program, object json.RawMessage) (Outcome, error) {
	data := libraryValues(e.cluster)
	for name, text := range map[string]json.RawMessage{
		compiler.ObjectKey: object, compiler.OldObjectKey: asked.OldObject,
		compiler.RequestKey: asked.Request, compiler.NamespaceObjectKey: asked.NamespaceO,
	} {
		var value any
		if len(text) > 0 {
			if err := utiljson.Unmarshal(text, &value); err != nil {
				return Outcome{}, err
			}
		}
		data[name] = value
	}
	ctx := context.Background()
	lazily := lazy.NewMapValue(compiler.VariablesType)
	data[compiler.VariablesKey] = lazily
	data[compiler.ExceptionsKey] = exceptionValue()
	for name, variable := range variables {
		lazily.Append(name, func(*lazy.MapValue) ref.Val {
			out, _, err := variable.ContextEval(ctx, data)
			if out != nil {
				return out
			}
			if err != nil {
				return types.WrapErr(err)
			}
			return nil
		})
	}
	value, details, err := program.ContextEval(ctx, data)
	var outcome Outcome
	if details != nil {
		outcome.Cost = details.ActualCost()
	}
	if err != nil {
		outcome.Error = err.Error()
		return outcome, nil
	}
	tagged := valueOf(value)
	outcome.Value = &tagged
	return outcome, nil
}
