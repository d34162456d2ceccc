package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// A document and the way by which the API server decodes it: "json" after a JSON patch, "merge" after an apply configuration.
type task struct {
	Version  string          `json:"version"`
	Kind     string          `json:"kind"`
	Way      string          `json:"way"`
	Document json.RawMessage `json:"document"`
}

type answer struct {
	Error  string          `json:"error,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
}

func decode() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	written := bufio.NewWriter(os.Stdout)
	defer written.Flush()
	for lines.Scan() {
		given := task{}
		if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
			panic(err)
		}
		reply := answer{}
		if object, err := decoded(given); err != nil {
			reply.Error = err.Error()
		} else if reply.Object, err = json.Marshal(object); err != nil {
			panic(err)
		}
		line, _ := json.Marshal(reply)
		fmt.Fprintln(written, string(line))
	}
}

func decoded(given task) (runtime.Object, error) {
	if given.Way == "merge" {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(given.Document); err != nil {
			return nil, err
		}
		version, _ := schema.ParseGroupVersion(given.Version)
		return scheme.Scheme.ConvertToVersion(object, version)
	}
	version, err := schema.ParseGroupVersion(given.Version)
	if err != nil {
		return nil, err
	}
	into, err := scheme.Scheme.New(version.WithKind(given.Kind))
	if err != nil {
		return nil, err
	}
	strict := serializer.NewSerializerWithOptions(
		serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, serializer.SerializerOptions{Strict: true})
	made, _, err := strict.Decode(given.Document, nil, into)
	return made, err
}
