// Command patches carries out strategic merge patches with Kubernetes' own library, as kubectl and API servers do.
//
//	patches        each line of the input is {"object": OBJECT, "patch": PATCH}; each line of the output, in the same order, is
//	               {"result": OBJECT}, or {"error": TEXT} where the library refuses the patch
//	patches -tags  a line for each field of each kind with a patch strategy or a merge key
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// longest is the most bytes of a line.
const longest = 1 << 26

type question struct {
	Object json.RawMessage `json:"object"`
	Patch  json.RawMessage `json:"patch"`
}

type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "patches:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return answerAll(scheme)
	case len(args) == 1 && args[0] == "-tags":
		return printTags(scheme)
	}
	return fmt.Errorf("usage: patches < QUESTIONS, or patches -tags")
}

// answerAll answers a line as soon as it is read: who asks may wait for it.
func answerAll(scheme *runtime.Scheme) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longest)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return fmt.Errorf("a line is no question: %w", err)
		}
		answered := answer{}
		if merged, err := merge(scheme, asked); err != nil {
			answered.Error = err.Error()
		} else {
			answered.Result = merged
		}
		if err := encoder.Encode(answered); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// merge does what `kubectl patch --local` does. A panic is an error: kubectl ends with it, and changes nothing.
func merge(scheme *runtime.Scheme, asked question) (merged []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			merged, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	var is struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(asked.Object, &is); err != nil {
		return nil, err
	}
	typed, err := scheme.New(schema.FromAPIVersionAndKind(is.APIVersion, is.Kind))
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(asked.Object, asked.Patch, typed)
}
