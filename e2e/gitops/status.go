package main

import (
	"encoding/json"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// status is what Flux waits by.
func status(question *json.Decoder) (any, error) {
	var asked struct {
		Objects []object `json:"objects"`
	}
	if err := question.Decode(&asked); err != nil {
		return nil, err
	}
	answers := make([]answer, 0, len(asked.Objects))
	for _, content := range asked.Objects {
		result, err := kstatus.Compute(&unstructured.Unstructured{Object: numbers(content)})
		if err != nil {
			answers = append(answers, answer{Error: err.Error()})
			continue
		}
		answers = append(answers, answer{Status: result.Status.String(), Message: result.Message})
	}
	return answers, nil
}

// numbers makes whole numbers integers, as they are in objects that come from an API server.
func numbers(content object) object {
	for key, value := range content {
		content[key] = number(value)
	}
	return content
}

func number(value any) any {
	switch value := value.(type) {
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	case map[string]any:
		return numbers(value)
	case []any:
		for i, item := range value {
			value[i] = number(item)
		}
	}
	return value
}
