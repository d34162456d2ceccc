package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	"github.com/julienschmidt/httprouter"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/client/informers/externalversions"
	"github.com/kyverno/kyverno/pkg/config"
	webhookcontroller "github.com/kyverno/kyverno/pkg/controllers/webhook"
	"github.com/kyverno/kyverno/pkg/webhooks/handlers"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// WebhookRequest is a set of policies with their exceptions and the data of a cluster. A set without policies ends the set of
// that name.
type WebhookRequest struct {
	Set string `json:"set"`
	PolicyRequest
}

// WebhookReply has the compile error of each policy that has one, and what Kyverno would register if these were its only policies.
// The webhooks lead to this process, as long as it runs.
type WebhookReply struct {
	Refused       map[string]string                                       `json:"refused,omitempty"`
	Configuration *admissionregistrationv1.ValidatingWebhookConfiguration `json:"configuration,omitempty"`
	Unreadable    string                                                  `json:"unreadable,omitempty"`
}

// webhooks are Kyverno's webhook controller and its admission server, for many sets of policies side by side: the path of each
// set begins with its name.
type webhooks struct {
	controller *controlled
	server     *httptest.Server
	bundle     []byte
	lock       sync.Mutex
	sets       map[string]http.Handler
}

func newWebhooks() *webhooks {
	log.SetLogger(logr.Discard())
	made := &webhooks{sets: map[string]http.Handler{}}
	made.server = httptest.NewTLSServer(made)
	made.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.server.Certificate().Raw})
	made.controller = newControlled(strings.TrimPrefix(made.server.URL, "https://"))
	return made
}

func (w *webhooks) answer(line []byte) any {
	asked := &WebhookRequest{}
	if err := json.Unmarshal(line, asked); err != nil {
		return WebhookReply{Unreadable: err.Error()}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(asked.Policies) == 0 {
		delete(w.sets, asked.Set)
		return WebhookReply{}
	}
	reply, err := w.registered(asked)
	if err != nil {
		return WebhookReply{Unreadable: err.Error()}
	}
	return reply
}

func (w *webhooks) registered(asked *WebhookRequest) (*WebhookReply, error) {
	exceptions, err := readExceptions(asked.Exceptions)
	if err != nil {
		return nil, err
	}
	reply := &WebhookReply{Refused: map[string]string{}}
	cluster := newCluster(&asked.PolicyRequest)
	setContext(cluster)
	var policies []policyLike
	var compiled []vpolengine.Policy
	for _, text := range asked.Policies {
		policy, err := readPolicy(text)
		if err != nil {
			return nil, err
		}
		policies = append(policies, policy)
		variants, err := variantsOf(policy, exceptions)
		if err != nil {
			reply.Refused[nameOf(policy)] = err.Error()
		}
		for _, variant := range variants {
			compiled = append(compiled, variant.policy)
		}
	}
	w.sets[asked.Set] = w.served(cluster, compiled, asked.Namespaces)
	reply.Configuration, err = w.controller.build(policies, w.bundle)
	if err != nil {
		return nil, err
	}
	for _, webhook := range reply.Configuration.Webhooks {
		url := webhook.ClientConfig.URL
		*url = strings.Replace(*url, w.server.URL, w.server.URL+"/"+asked.Set, 1)
	}
	return reply, nil
}

// served is what pkg/webhooks/server.go and cmd/kyverno serve for validating policies.
func (w *webhooks) served(cluster *cluster, compiled []vpolengine.Policy, namespaces []corev1.Namespace) http.Handler {
	provider := vpolengine.ProviderFunc(func(context.Context) ([]vpolengine.Policy, error) { return compiled, nil })
	engine := vpolengine.NewEngine(provider, namespaceResolver(namespaces), matching.NewMatcher())
	handler := newHandler(engine, cluster)
	mux := httprouter.New()
	for path, validate := range map[string]handlers.AdmissionHandler{
		"/vpol/*policies": func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, start time.Time) handlers.AdmissionResponse {
			return handler.ValidateClustered(ctx, logger, request, "", start)
		},
		"/nvpol/*policies": func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, start time.Time) handlers.AdmissionResponse {
			return handler.ValidateNamespaced(ctx, logger, request, "", start)
		},
	} {
		mux.HandlerFunc("POST", path, handlers.FromAdmissionFunc("VALIDATE", validate).
			WithFilter(w.controller.configuration).WithAdmission(logr.Discard()).ToHandlerFunc("VPOL"))
	}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		setContext(cluster)
		mux.ServeHTTP(writer, request)
	})
}

// ServeHTTP answers one request at a time: the libraries have one context for the whole process.
func (w *webhooks) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	w.lock.Lock()
	defer w.lock.Unlock()
	set, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	handler, found := w.sets[set]
	if !found {
		http.NotFound(writer, request)
		return
	}
	http.StripPrefix("/"+set, handler).ServeHTTP(writer, request)
}

// controlled is Kyverno's webhook controller with the policies of its listers in our hands.
type controlled struct {
	receiver      unsafe.Pointer
	configuration config.Configuration
	clustered     cache.Store
	namespaced    cache.Store
	leases        cache.Store
}

func newControlled(server string) *controlled {
	configuration := config.NewDefaultConfiguration(false)
	cluster := informers.NewSharedInformerFactory(nil, 0)
	kyverno := externalversions.NewSharedInformerFactory(nil, 0)
	controller := newWebhookController(cluster, kyverno, server, configuration, recorder{})
	policies := kyverno.Policies().V1beta1()
	return &controlled{
		receiver:      reflect.ValueOf(controller).UnsafePointer(),
		configuration: configuration,
		clustered:     policies.ValidatingPolicies().Informer().GetStore(),
		namespaced:    policies.NamespacedValidatingPolicies().Informer().GetStore(),
		leases:        cluster.Coordination().V1().Leases().Informer().GetStore(),
	}
}

// build returns what the controller registers for these policies alone. Its cache has the conditions of the policies that exist.
func (c *controlled) build(policies []policyLike, bundle []byte) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	if err := c.live(); err != nil {
		return nil, err
	}
	for _, policy := range policies {
		store := c.clustered
		if policy.GetNamespace() != "" {
			store = c.namespaced
		}
		if err := store.Add(policy); err != nil {
			return nil, err
		}
		handlePolicyCreate(c.receiver, policy)
		defer func() {
			_ = store.Delete(policy)
			handlePolicyDelete(c.receiver, policy)
		}()
	}
	return buildResourceValidatingWebhookConfiguration(c.receiver, context.Background(), c.configuration, bundle)
}

// live renews the lease without which the controller removes all webhooks.
func (c *controlled) live() error {
	return c.leases.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace:   config.KyvernoNamespace(),
		Name:        "kyverno-health",
		Annotations: map[string]string{webhookcontroller.AnnotationLastRequestTime: time.Now().Format(time.RFC3339)},
	}})
}

// recorder keeps no state of policies.
type recorder struct{}

func (recorder) Ready(string) (bool, bool)    { return true, true }
func (recorder) Record(string)                {}
func (recorder) Reset()                       {}
func (recorder) NotifyChannel() <-chan string { return nil }

// The methods of the controller are not exported; see link.s.
//
//go:linkname buildResourceValidatingWebhookConfiguration github.com/kyverno/kyverno/pkg/controllers/webhook.(*controller).buildResourceValidatingWebhookConfiguration
func buildResourceValidatingWebhookConfiguration(receiver unsafe.Pointer, ctx context.Context, configuration config.Configuration, bundle []byte) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)

//go:linkname handlePolicyCreate github.com/kyverno/kyverno/pkg/controllers/webhook.(*controller).handlePolicyCreate
func handlePolicyCreate(receiver unsafe.Pointer, policy any)

//go:linkname handlePolicyDelete github.com/kyverno/kyverno/pkg/controllers/webhook.(*controller).handlePolicyDelete
func handlePolicyDelete(receiver unsafe.Pointer, policy any)

// handler is Kyverno's, whose type is not exported.
type handler interface {
	ValidateClustered(context.Context, logr.Logger, handlers.AdmissionRequest, string, time.Time) handlers.AdmissionResponse
	ValidateNamespaced(context.Context, logr.Logger, handlers.AdmissionRequest, string, time.Time) handlers.AdmissionResponse
}
