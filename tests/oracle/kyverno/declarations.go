package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/kyverno/kyverno/pkg/cel/compiler"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Declarations are the two CEL environments of a release: that of cluster-wide policies, and that of policies in a namespace.
//
// A type is written as a text, or as a list that begins with its constructor: "int", ["list", "int"], ["map", "string", "any"],
// ["object", "kubernetes.Namespace"], ["opaque", "optional_type", ["parameter", "V"]], ["type", "dyn"], ["wrapper", "int"].
type Declarations struct {
	Release    string      `json:"release"`
	Cluster    Environment `json:"cluster"`
	Namespaced Environment `json:"namespaced"`
}

// Environment has the variables by name, the overloads of each function in their order, the fields of each object type, and the
// macros.
type Environment struct {
	Variables map[string]any            `json:"variables"`
	Functions map[string][]Overload     `json:"functions"`
	Types     map[string]map[string]any `json:"types"`
	Macros    []string                  `json:"macros"`
}

// Overload is one signature of a function.
type Overload struct {
	ID        string `json:"id"`
	Member    bool   `json:"member"`
	Arguments []any  `json:"arguments"`
	Result    any    `json:"result"`
}

func printDeclarations(output io.Writer) error {
	declared := Declarations{Release: release}
	var err error
	if declared.Cluster, err = declaredIn(""); err != nil {
		return err
	}
	if declared.Namespaced, err = declaredIn("default"); err != nil {
		return err
	}
	encoder := json.NewEncoder(output)
	encoder.SetIndent("", " ")
	return encoder.Encode(declared)
}

func declaredIn(namespace string) (Environment, error) {
	set, _, err := environmentOf(namespace, newCluster(nil))
	if err != nil {
		return Environment{}, err
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		return Environment{}, err
	}
	types_ := &objectTypes{provider: env.CELTypeProvider(), names: map[string][]string{}, fields: map[string]map[string]any{}}
	types_.name(compiler.RequestType)
	types_.name(compiler.NamespaceType)
	for _, name := range nativeTypes {
		types_.add(name)
	}
	declared := Environment{Variables: map[string]any{}, Functions: map[string][]Overload{}, Types: types_.fields}
	for _, variable := range env.Variables() {
		// The names of types are variables in older releases of cel-go.
		if variable.Type().Kind() != types.TypeKind {
			declared.Variables[variable.Name()] = types_.written(variable.Type())
		}
	}
	for name, function := range env.Functions() {
		declared.Functions[name] = overloadsOf(function, types_)
	}
	declared.Macros = macrosOf(env)
	return declared, nil
}

func overloadsOf(function *decls.FunctionDecl, types_ *objectTypes) []Overload {
	overloads := []Overload{}
	for _, overload := range function.OverloadDecls() {
		arguments := []any{}
		for _, argument := range overload.ArgTypes() {
			arguments = append(arguments, types_.written(argument))
		}
		overloads = append(overloads, Overload{
			ID:        overload.ID(),
			Member:    overload.IsMemberFunction(),
			Arguments: arguments,
			Result:    types_.written(overload.ResultType()),
		})
	}
	return overloads
}

func macrosOf(env *cel.Env) []string {
	keys := map[string]bool{}
	for _, macro := range env.Macros() {
		keys[macro.MacroKey()] = true
	}
	macros := []string{}
	for key := range keys {
		macros = append(macros, key)
	}
	slices.Sort(macros)
	return macros
}

// objectTypes collects the fields of all object types that are written. Providers of Kubernetes' own types have the types of
// fields, and no list of their names, so names has those.
type objectTypes struct {
	provider types.Provider
	names    map[string][]string
	fields   map[string]map[string]any
}

func (o *objectTypes) name(type_ *apiservercel.DeclType) {
	if type_ == nil || o.names[type_.TypeName()] != nil {
		return
	}
	for name, field := range type_.Fields {
		o.names[type_.TypeName()] = append(o.names[type_.TypeName()], name)
		o.name(field.Type)
	}
	o.name(type_.KeyType)
	o.name(type_.ElemType)
}

func (o *objectTypes) add(name string) {
	if _, known := o.fields[name]; known || strings.HasPrefix(name, "google.") {
		return
	}
	names, found := o.names[name]
	if !found {
		if names, found = o.provider.FindStructFieldNames(name); !found {
			return
		}
	}
	fields := map[string]any{}
	o.fields[name] = fields
	for _, field := range names {
		if declared, found := o.provider.FindStructFieldType(name, field); found {
			fields[field] = o.written(declared.Type)
		}
	}
}

func (o *objectTypes) written(type_ *types.Type) any {
	switch type_.Kind() {
	case types.AnyKind:
		return "any"
	case types.DynKind:
		return "dyn"
	case types.TypeParamKind:
		return []any{"parameter", type_.TypeName()}
	case types.StructKind:
		o.add(type_.TypeName())
		return []any{"object", type_.TypeName()}
	case types.OpaqueKind:
		return o.constructed([]any{"opaque", type_.TypeName()}, type_)
	case types.ListKind:
		return o.constructed([]any{"list"}, type_)
	case types.MapKind:
		return o.constructed([]any{"map"}, type_)
	case types.TypeKind:
		return o.constructed([]any{"type"}, type_)
	case types.TimestampKind:
		return "timestamp"
	case types.DurationKind:
		return "duration"
	case types.NullTypeKind:
		return "null"
	}
	if type_.IsAssignableType(types.NullType) {
		return []any{"wrapper", strings.TrimSuffix(strings.TrimPrefix(type_.String(), "wrapper("), ")")}
	}
	return type_.TypeName()
}

func (o *objectTypes) constructed(constructor []any, type_ *types.Type) any {
	for _, parameter := range type_.Parameters() {
		constructor = append(constructor, o.written(parameter))
	}
	return constructor
}

// nativeTypes are the Go types that the libraries register, beyond those that other declarations mention.
var nativeTypes = []string{"libs.Exception", "user.ServiceAccount"}
