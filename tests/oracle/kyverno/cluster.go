package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kyverno/kyverno/pkg/cel/libs"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Collection is a resource with its kind and its objects.
type Collection struct {
	APIVersion string            `json:"apiVersion"`
	Resource   string            `json:"resource"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items,omitempty"`
}

// cluster answers the calls of expressions from the data of a request.
type cluster struct {
	*libs.FakeContextProvider
	collections []Collection
	entries     map[string]any
	images      map[string]map[string]any
}

func newCluster(asked *PolicyRequest) *cluster {
	made := &cluster{FakeContextProvider: libs.NewFakeContextProvider()}
	if asked != nil {
		made.collections, made.entries, made.images = asked.Inventory, asked.Entries, asked.Images
	}
	return made
}

func (c *cluster) objects(apiVersion, resource string) (*Collection, []unstructured.Unstructured, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, nil, err
	}
	for index := range c.collections {
		collection := &c.collections[index]
		if collection.APIVersion != apiVersion || collection.Resource != resource {
			continue
		}
		var items []unstructured.Unstructured
		for _, text := range collection.Items {
			content := map[string]any{}
			if err := utiljson.Unmarshal(text, &content); err != nil {
				return nil, nil, err
			}
			items = append(items, unstructured.Unstructured{Object: content})
		}
		return collection, items, nil
	}
	return nil, nil, apierrors.NewGenericServerResponse(404, "get", gv.WithResource(resource).GroupResource(), "", "404 page not found", 0, true)
}

func (c *cluster) ListResources(apiVersion, resource, namespace string, selected map[string]string) (*unstructured.UnstructuredList, error) {
	collection, items, err := c.objects(apiVersion, resource)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": apiVersion, "kind": collection.Kind + "List", "metadata": map[string]any{"resourceVersion": "1"},
	}}
	selector := labels.SelectorFromSet(selected)
	for _, item := range items {
		if (namespace == "" || item.GetNamespace() == namespace) && selector.Matches(labels.Set(item.GetLabels())) {
			list.Items = append(list.Items, item)
		}
	}
	return list, nil
}

func (c *cluster) GetResource(apiVersion, resource, namespace, name string) (*unstructured.Unstructured, error) {
	_, items, err := c.objects(apiVersion, resource)
	if err != nil {
		return nil, err
	}
	for index := range items {
		if items[index].GetNamespace() == namespace && items[index].GetName() == name {
			return &items[index], nil
		}
	}
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return nil, apierrors.NewNotFound(gv.WithResource(resource).GroupResource(), name)
}

func (c *cluster) PostResource(string, string, string, map[string]any) (*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("nothing is created here")
}

func (c *cluster) ToGVR(apiVersion, kind string) (*schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	for _, collection := range c.collections {
		if collection.APIVersion == apiVersion && collection.Kind == kind {
			gvr := gv.WithResource(collection.Resource)
			return &gvr, nil
		}
	}
	return nil, fmt.Errorf("no matches for kind %q in version %q", kind, apiVersion)
}

func (c *cluster) GetGlobalReference(name, projection string) (any, error) {
	entry, found := c.entries[name]
	if !found {
		return nil, nil
	}
	if projection == "" {
		return entry, nil
	}
	if projected, found := c.entries[name+"/"+projection]; found {
		return projected, nil
	}
	return nil, fmt.Errorf("projection %q not found", projection)
}

func (c *cluster) imageData(image string) (map[string]any, error) {
	if data, found := c.images[image]; found {
		return data, nil
	}
	return nil, fmt.Errorf("GET %s: unexpected status code 404", strings.TrimSpace(image))
}
