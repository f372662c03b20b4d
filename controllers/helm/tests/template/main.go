// Runs every case of cases.txt through Go's own text/template and writes what it says to expected.json.
// Use the Go version of the Helm that is followed: GOTOOLCHAIN=go1.23.7 go run main.go
package main

import (
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type outcome struct {
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	cases, err := os.ReadFile("cases.txt")
	check(err)
	raw, err := os.ReadFile("data.json")
	check(err)
	outcomes := []outcome{}
	for _, text := range strings.Split(strings.TrimSuffix(string(cases), "\n"), "\n%%\n") {
		var data map[string]interface{}
		check(json.Unmarshal(raw, &data))
		parsed, err := template.New("case").Option("missingkey=zero").Parse(text)
		var out strings.Builder
		if err == nil {
			err = parsed.Execute(&out, data)
		}
		if err != nil {
			outcomes = append(outcomes, outcome{Error: err.Error()})
		} else {
			outcomes = append(outcomes, outcome{Output: out.String()})
		}
	}
	encoded, err := json.MarshalIndent(outcomes, "", " ")
	check(err)
	check(os.WriteFile("expected.json", append(encoded, '\n'), 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
