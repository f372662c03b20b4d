// Command gitops-checks judges Kubernetes objects as Flux and Argo CD do: a question as JSON on standard input, the answers
// as JSON on standard output, one for each object, in order.
//
//	gitops-checks status   {"objects": [OBJECT ...]}
//	gitops-checks health   {"scripts": {"emco.io_Cluster": LUA ...}, "objects": [OBJECT ...]}
//	gitops-checks cel      {"expressions": {"current": CEL ...}, "objects": [OBJECT ...]}
//	gitops-checks diff     {"kubectl": FILE, "pairs": [{"config": OBJECT, "live": OBJECT} ...]}
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type object = map[string]any

// answer is what one judge says of one object.
type answer struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitops-checks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: gitops-checks status|health|cel|diff < QUESTION")
	}
	commands := map[string]func(*json.Decoder) (any, error){
		"status": status, "health": health, "cel": expressions, "diff": diff,
	}
	command, known := commands[args[0]]
	if !known {
		return fmt.Errorf("there is no command %q", args[0])
	}
	question := json.NewDecoder(os.Stdin)
	question.DisallowUnknownFields()
	answers, err := command(question)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}
