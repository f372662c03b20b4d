package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"

	argo "github.com/argoproj/gitops-engine/pkg/diff"
	openapi "github.com/google/gnostic-models/openapiv2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

// As Argo CD's application controller calls itself.
const manager = "argocd-controller"

// pair is an object as it is in Git, and as the API server has it.
type pair struct {
	Config object `json:"config"`
	Live   object `json:"live"`
}

// difference says for each way in which Argo CD compares whether it would show the object as OutOfSync.
type difference struct {
	// Its default: against the annotation of the last apply.
	ClientSide bool `json:"clientSide"`
	// With the sync option ServerSideApply=true: by owners of fields.
	Structured bool `json:"structured"`
	// With the compare option ServerSideDiff=true: by a dry run of the API server.
	ServerSide bool   `json:"serverSide"`
	Live       string `json:"live,omitempty"`
	Predicted  string `json:"predicted,omitempty"`
}

// diff compares with the code of Argo CD, set up as its controller sets it up.
func diff(question *json.Decoder) (any, error) {
	var asked struct {
		Kubectl string `json:"kubectl"`
		Pairs   []pair `json:"pairs"`
	}
	if err := question.Decode(&asked); err != nil {
		return nil, err
	}
	kubectl := runner(asked.Kubectl)
	parser, err := kubectl.parser()
	if err != nil {
		return nil, err
	}
	common := []argo.Option{argo.WithNormalizer(noStatus{}), argo.WithGVKParser(parser), argo.WithManager(manager)}
	with := func(more ...argo.Option) []argo.Option { return append(append([]argo.Option{}, common...), more...) }
	ways := [][]argo.Option{
		common,
		with(argo.WithStructuredMergeDiff(true)),
		with(argo.WithServerSideDiff(true), argo.WithServerSideDryRunner(kubectl), argo.WithIgnoreMutationWebhook(true)),
	}
	answers := make([]difference, 0, len(asked.Pairs))
	for _, pair := range asked.Pairs {
		var answer difference
		for i, options := range ways {
			config := &unstructured.Unstructured{Object: numbers(pair.Config)}
			live := &unstructured.Unstructured{Object: numbers(pair.Live)}
			result, err := argo.Diff(config.DeepCopy(), live.DeepCopy(), options...)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", config.GetKind(), config.GetName(), err)
			}
			*[]*bool{&answer.ClientSide, &answer.Structured, &answer.ServerSide}[i] = result.Modified
			if result.Modified {
				answer.Live, answer.Predicted = string(result.NormalizedLive), string(result.PredictedLive)
			}
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// noStatus leaves out what Argo CD's default compare options leave out.
type noStatus struct{}

func (noStatus) Normalize(un *unstructured.Unstructured) error {
	if un != nil {
		unstructured.RemoveNestedField(un.Object, "status")
	}
	return nil
}

// runner is kubectl, with the environment of this process.
type runner string

func (r runner) call(input []byte, args ...string) ([]byte, error) {
	command := exec.Command(string(r), args...)
	command.Stdin = bytes.NewReader(input)
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl %v: %w: %s", args, err, said.String())
	}
	return output, nil
}

// parser knows the types of the API server, the custom ones too.
func (r runner) parser() (*managedfields.GvkParser, error) {
	text, err := r.call(nil, "get", "--raw", "/openapi/v2")
	if err != nil {
		return nil, err
	}
	document, err := openapi.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		return nil, err
	}
	return managedfields.NewGVKParser(models, false)
}

// Run is a dry run of a server-side apply.
func (r runner) Run(_ context.Context, un *unstructured.Unstructured, manager string) (string, error) {
	input, err := un.MarshalJSON()
	if err != nil {
		return "", err
	}
	output, err := r.call(input, "apply", "--server-side", "--dry-run=server", "--force-conflicts",
		"--field-manager="+manager, "--show-managed-fields", "-o", "json", "-f", "-")
	return string(output), err
}
