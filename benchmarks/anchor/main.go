// Command anchor times cel-go with Kubernetes' libraries on a corpus of expressions and objects.
//
// It is given a file `{"cases": [{"name", "expr", "variables"}], "objects": […]}` and, on each line of its standard input, the
// name of a way to evaluate: `metered`, the program that kube-apiserver compiles, with its cost limits, or `unmetered`, the
// same expression without any. For each it prints one line: nanoseconds per evaluation, by case.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

const shortest = 30 * time.Millisecond

type expression struct{ Name, Expr string }

type subject struct {
	Name      string
	Expr      string
	Variables []expression
}

type corpus struct {
	Cases   []subject
	Objects []json.RawMessage
}

// activation holds what an expression may name.
type activation struct {
	object, request any
	variables       any
}

func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "object":
		return a.object, true
	case "request":
		return a.request, true
	case "variables":
		return a.variables, true
	}
	return nil, false
}

func (a *activation) Parent() cel.Activation { return nil }

// evaluation is one expression, ready to be evaluated in one of the ways; variables, if it has any, makes those of one object.
type evaluation struct {
	name      string
	program   cel.Program
	variables func(*activation) any
}

func (e *evaluation) run(inputs []*activation) {
	for _, input := range inputs {
		if e.variables != nil {
			input.variables = e.variables(input)
		}
		e.program.ContextEval(context.Background(), input)
	}
}

func metered(one subject) (*evaluation, error) {
	compiler, err := admissioncel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	declarations := admissioncel.OptionalVariableDeclarations{}
	for _, variable := range one.Variables {
		if compiled := compiler.CompileAndStoreVariable(named(variable), declarations, environment.StoredExpressions); compiled.Error != nil {
			return nil, compiled.Error
		}
	}
	compiled := compiler.CompileCELExpression(named(expression{one.Name, one.Expr}), declarations, environment.StoredExpressions)
	if compiled.Error != nil {
		return nil, compiled.Error
	}
	made := &evaluation{name: one.Name, program: compiled.Program}
	if len(one.Variables) > 0 {
		made.variables = func(input *activation) any { return compiler.CreateContext(context.Background()).Variables(input) }
	}
	return made, nil
}

func unmetered(one subject) (*evaluation, error) {
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		ext.Strings(ext.StringsVersion(2)), library.Quantity(), library.Lists(library.ListsVersion(1)), library.Regex())
	if err != nil {
		return nil, err
	}
	program, err := plain(env, one.Expr)
	if err != nil {
		return nil, err
	}
	made := &evaluation{name: one.Name, program: program}
	if len(one.Variables) == 0 {
		return made, nil
	}
	variables := map[string]cel.Program{}
	for _, variable := range one.Variables {
		if variables[variable.Name], err = plain(env, variable.Expr); err != nil {
			return nil, err
		}
	}
	made.variables = func(input *activation) any {
		values := map[string]any{}
		for name, program := range variables {
			values[name], _, _ = program.Eval(input)
		}
		return values
	}
	return made, nil
}

func plain(env *cel.Env, text string) (cel.Program, error) {
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(tree, cel.EvalOptions(cel.OptOptimize))
}

type named expression

func (n named) GetName() string          { return n.Name }
func (n named) GetExpression() string    { return n.Expr }
func (n named) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

func inputs(documents []json.RawMessage) ([]*activation, error) {
	var made []*activation
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		made = append(made, &activation{object: types.DefaultTypeAdapter.NativeToValue(object.Object), request: requestOn(object)})
	}
	return made, nil
}

// requestOn is the request that creates an object, in the form that the activation of kube-apiserver holds.
func requestOn(object *unstructured.Unstructured) any {
	kind := object.GroupVersionKind()
	resource := kind.GroupVersion().WithResource("deployments")
	sender := &user.DefaultInfo{
		Name: "system:serviceaccount:kube-system:deployment-controller", UID: "abc",
		Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	attributes := admission.NewAttributesRecord(object, nil, kind, object.GetNamespace(), object.GetName(), resource, "",
		admission.Create, &metav1.CreateOptions{}, false, sender)
	return common.SchemalessTypedToVal(
		admissioncel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind)))
}

// nanoseconds is how long one evaluation takes: all objects, again and again until the clock can tell.
func nanoseconds(one *evaluation, objects []*activation) float64 {
	passes, started := 0, time.Now()
	for time.Since(started) < shortest {
		one.run(objects)
		passes++
	}
	return float64(time.Since(started).Nanoseconds()) / float64(passes*len(objects))
}

func prepare(cases []subject, compile func(subject) (*evaluation, error)) ([]*evaluation, error) {
	var prepared []*evaluation
	for _, one := range cases {
		compiled, err := compile(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		prepared = append(prepared, compiled)
	}
	return prepared, nil
}

func run(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var given corpus
	if err := json.Unmarshal(content, &given); err != nil {
		return err
	}
	objects, err := inputs(given.Objects)
	if err != nil {
		return err
	}
	ways := map[string][]*evaluation{}
	if ways["metered"], err = prepare(given.Cases, metered); err != nil {
		return err
	}
	if ways["unmetered"], err = prepare(given.Cases, unmetered); err != nil {
		return err
	}
	asked, answer := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for asked.Scan() {
		times := map[string]float64{}
		for _, one := range ways[asked.Text()] {
			times[one.name] = nanoseconds(one, objects)
		}
		if err := answer.Encode(times); err != nil {
			return err
		}
	}
	return asked.Err()
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "anchor:", err)
		os.Exit(1)
	}
}
