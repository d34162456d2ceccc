package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compilers caches compilers, which are slow to make: one for each set of variables.
type compilers struct {
	cached map[string]*compiler
}

// The number of environments of a long run is limited.
const mostCompilers = 64

func newCompilers() *compilers {
	return &compilers{cached: map[string]*compiler{}}
}

// compiler compiles the expressions of one policy: its variables are compiled into it.
type compiler struct {
	composited   *admissioncel.CompositedCompiler
	declarations admissioncel.OptionalVariableDeclarations
	mode         environment.Type
}

func (c *compilers) compilerFor(asked *Request) (*compiler, error) {
	key, err := json.Marshal([]any{asked.Variables, asked.Version, asked.Mode, asked.Params != nil, asked.Mutation, asked.Authorizer != nil})
	if err != nil {
		return nil, err
	}
	if compiler, ok := c.cached[string(key)]; ok {
		return compiler, nil
	}
	if len(c.cached) >= mostCompilers {
		clear(c.cached)
	}
	made, err := newCompiler(asked)
	if err == nil {
		c.cached[string(key)] = made
	}
	return made, err
}

func newCompiler(asked *Request) (*compiler, error) {
	compatibility, err := version.ParseMajorMinor(asked.Version)
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", asked.Version, err)
	}
	mode := environment.StoredExpressions
	if asked.Mode == "new" {
		mode = environment.NewExpressions
	}
	composited, err := admissioncel.NewCompositedCompiler(environment.MustBaseEnvSet(compatibility))
	if err != nil {
		return nil, err
	}
	made := &compiler{composited: composited, mode: mode, declarations: admissioncel.OptionalVariableDeclarations{
		HasParams:     asked.Params != nil,
		HasAuthorizer: asked.Authorizer != nil,
		HasPatchTypes: asked.Mutation,
	}}
	for _, variable := range asked.Variables {
		composited.CompileAndStoreVariable(namedExpression(variable), made.declarations, mode)
	}
	return made, nil
}

// namedExpression is a variable as the compiler wants it.
type namedExpression Variable

func (v namedExpression) GetName() string          { return v.Name }
func (v namedExpression) GetExpression() string    { return v.Expression }
func (v namedExpression) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

// typedExpression is an expression with its allowed types.
type typedExpression struct {
	text    string
	results []*cel.Type
}

func (e typedExpression) GetExpression() string    { return e.text }
func (e typedExpression) ReturnTypes() []*cel.Type { return e.results }

var resultTypes = map[string]*cel.Type{
	"any":       cel.AnyType,
	"bool":      cel.BoolType,
	"int":       cel.IntType,
	"string":    cel.StringType,
	"null_type": cel.NullType,
}

func expressionOf(asked *Request) (typedExpression, error) {
	if len(asked.Results) == 0 {
		return typedExpression{asked.Expression, []*cel.Type{cel.AnyType}}, nil
	}
	var results []*cel.Type
	for _, name := range asked.Results {
		result, ok := resultTypes[name]
		if !ok {
			return typedExpression{}, fmt.Errorf("unknown result type %q", name)
		}
		results = append(results, result)
	}
	return typedExpression{asked.Expression, results}, nil
}
