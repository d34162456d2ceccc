// Prints, as JSON, the Go types behind the API's definitions: their fields in order, what each holds, and when it is written.
// With the argument "decode" it reads cases instead and says what Go's decoders make of each.
package main

import (
	"encoding"
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	zeroTeller      = reflect.TypeFor[interface{ IsZero() bool }]()
)

// A struct, as it is printed.
type structure struct {
	Definition string  `json:"definition"`
	Go         string  `json:"go"`
	Fields     []field `json:"fields"`
}

type field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Written  string `json:"written"`
	Embedded string `json:"embedded,omitempty"`
}

type walk struct {
	found map[reflect.Type]*structure
}

// The name of a type's OpenAPI definition.
func definition(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, parts[1:]...), t.Name()), ".")
}

// What a type holds: `*` pointer, `[]` slice, `{}` map, then a plain type, `name=plain` for a named one, `#definition` for a struct,
// `!definition` for a type that decodes itself.
func (w *walk) describe(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return "*" + w.describe(t.Elem())
	}
	if reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		if t.Kind() == reflect.Struct {
			w.visit(t)
		}
		return "!" + definition(t)
	}
	named := ""
	if t.Name() != "" && t.PkgPath() != "" {
		named = t.String() + "="
	}
	switch t.Kind() {
	case reflect.Slice:
		return named + "[]" + w.describe(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(t.String())
		}
		key := ""
		if t.Key().String() != "string" {
			key = t.Key().String()
		}
		return named + "{" + key + "}" + w.describe(t.Elem())
	case reflect.Struct:
		w.visit(t)
		return "#" + definition(t)
	case reflect.Interface:
		return "any"
	default:
		return named + t.Kind().String()
	}
}

func (w *walk) visit(t reflect.Type) {
	if w.found[t] != nil {
		return
	}
	made := &structure{Definition: definition(t), Go: t.String()}
	w.found[t] = made
	if reflect.PointerTo(t).Implements(unmarshaler) && !strings.Contains(t.Name(), "JSONSchemaPropsOr") {
		return
	}
	w.fields(t, made, nil)
}

func (w *walk) fields(t reflect.Type, into *structure, embedded []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && tag[0] == "" {
			w.fields(f.Type, into, append(embedded, f.Name))
			continue
		}
		name := tag[0]
		if name == "" {
			name = f.Name
		}
		written := "always"
		for _, option := range tag[1:] {
			switch option {
			case "omitempty", "omitzero":
				if written == "always" {
					written = option
				} else {
					written = "omitempty,omitzero"
				}
			case "string":
				panic("string option")
			}
		}
		if strings.Contains(written, "omitzero") && f.Type.Implements(zeroTeller) {
			written += ",IsZero"
		}
		into.Fields = append(into.Fields, field{name, w.describe(f.Type), written, strings.Join(embedded, ".")})
	}
}

func types() runtime.ObjectTyper {
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, aggregator.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			panic(err)
		}
	}
	return scheme.Scheme
}

func dump() {
	w := &walk{found: map[reflect.Type]*structure{}}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		_, listed := t.FieldByName("Items")
		_, object := reflect.New(t).Interface().(metav1.Object)
		if gvk.Version != runtime.APIVersionInternal && object && !listed {
			w.visit(t)
		}
	}
	found := []*structure{}
	for _, one := range w.found {
		found = append(found, one)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Definition < found[j].Definition })
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

func main() {
	types()
	if len(os.Args) > 1 && os.Args[1] == "decode" {
		decode()
		return
	}
	dump()
}
