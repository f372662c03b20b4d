package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// expressions evaluates expressions as Flux evaluates its healthCheckExprs: over the parts of an object, and one that fails, such
// as over a status that is not there, is not true.
func expressions(question *json.Decoder) (any, error) {
	var asked struct {
		Expressions map[string]string `json:"expressions"`
		Objects     []object          `json:"objects"`
	}
	if err := question.Decode(&asked); err != nil {
		return nil, err
	}
	parts := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	options := []cel.EnvOption{ext.Strings()}
	for _, part := range parts {
		options = append(options, cel.Variable(part, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	programs := map[string]cel.Program{}
	for name, text := range asked.Expressions {
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			return nil, fmt.Errorf("%s: %w", name, issues.Err())
		}
		if programs[name], err = env.Program(ast); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	answers := make([]map[string]bool, 0, len(asked.Objects))
	for _, content := range asked.Objects {
		content = numbers(content)
		vars := map[string]any{}
		for _, part := range parts {
			if value, there := content[part]; there {
				vars[part] = value
			}
		}
		answer := map[string]bool{}
		for name, program := range programs {
			result, _, err := program.Eval(vars)
			answer[name] = err == nil && result.Value() == true
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
