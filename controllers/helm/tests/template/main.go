// Runs the cases of cases.txt, and combinations of constructs with values of every kind, through Go's own text/template
// and writes what it says to expected.json.
// Use the Go version of the Helm that is followed: GOTOOLCHAIN=go1.23.7 go run main.go
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"
)

// One template, and what Go made of it.
type outcome struct {
	Text   string `json:"text"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Expressions of every kind a template can have at hand.
var values = []string{
	"nil", "true", "false", "0", "7", "-7", "0.0", "1.5", "0i", "1.5i", "'c'", "``", "`text`", "(list)", "(list 3 4 5)",
	"(until 0)", "(until 3)", "(dict)", "(dict `one` 1)", ".null", ".missing", ".map.missing", ".n", ".zero", ".s", ".empty",
	".list", ".none", ".nested", ".map", ".emptymap", "(toDate `2006` `2020`)", "$", "(.s)", "(index .nums 0)", "(print)",
}

// What can be done with one of them, which stands for the at sign.
var constructs = []string{
	"<{{@}}>", "{{if @}}yes{{else}}no{{end}}", "{{with @}}<{{.}}>{{else}}no{{end}}", "{{with $x := @}}<{{$x}}>{{else}}<{{$x}}>{{end}}",
	"{{range @}}<{{.}}>{{else}}none{{end}}", "{{range $i, $x := @}}{{$i}}={{$x}};{{else}}none{{end}}", "{{$x := @}}<{{$x}}>",
	"{{not @}}", "{{and @ 1}} {{and 1 @}}", "{{or @ 1}} {{or 0 @}}", "{{@ | and 1}} {{@ | or 0}}", "{{len @}}", "{{index @ 0}}",
	"{{index @ `one`}}", "{{index .list @}}", "{{index .map @}}",
	"{{eq @ @}}", "{{eq 7 @}}", "{{eq @ `text` 0.0 true}}", "{{ne @ nil}}", "{{lt @ 8}}", "{{le @ 1.5}}", "{{gt @ `a`}}", "{{ge @ @}}",
	"{{print @ @}}", "{{println @}}", "{{printf `%v %T` @ @}}", "{{printf `%d|%s|%q|%x|%g|%t` @ @ @ @ @ @}}", "{{printf `%5v|%-5v|%05v` @ @ @}}",
	"{{@ | printf}}", "{{html @}}", "{{js @}}", "{{urlquery @}}", "{{call @}}", "{{(@).one}}", "{{$x := @}}{{$x.one}}", "{{@ | upper}}",
	"{{upper @}}", "{{repeat @ `x`}}", "{{trimSuffix `t` @}}", "{{add 1 @}}", "{{template `t` @}}{{define `t`}}<{{.}}>{{end}}",
	"{{block `t` @}}<{{.}}>{{end}}", "{{@ 1}}", "{{1 | @}}", "{{break @}}", "{{range .list}}{{with @}}{{break}}{{end}}x{{end}}",
	"{{range .list}}{{if @}}{{continue}}{{end}}x{{end}}", "{{$x := 1}}{{if true}}{{$x = @}}{{end}}<{{$x}}>", "a {{- @ -}} b",
}

// Some functions that Helm has too, with parameters of several types.
var functions = template.FuncMap{
	"upper":      strings.ToUpper,
	"trimSuffix": func(a, b string) string { return strings.TrimSuffix(b, a) },
	"repeat":     func(count int, text string) string { return strings.Repeat(text, count) },
	"list":       func(items ...interface{}) []interface{} { return items },
	"until":      func(count int) []int { return numbers(count) },
	"add":        func(items ...interface{}) int64 { return sum(items) },
	"mustFromJson": func(text string) (value interface{}, err error) {
		err = json.Unmarshal([]byte(text), &value)
		return value, err
	},
	"toDate": func(layout, text string) time.Time {
		date, _ := time.ParseInLocation(layout, text, time.UTC)
		return date
	},
	"dict": func(items ...interface{}) map[string]interface{} {
		made := map[string]interface{}{}
		for at := 0; at+1 < len(items); at += 2 {
			made[fmt.Sprint(items[at])] = items[at+1]
		}
		return made
	},
}

func numbers(count int) []int {
	out := []int{}
	for at := 0; at < count; at++ {
		out = append(out, at)
	}
	return out
}

// Adds whole numbers and floats, as far as the cases need it.
func sum(items []interface{}) (total int64) {
	for _, item := range items {
		switch item := item.(type) {
		case int:
			total += int64(item)
		case int32:
			total += int64(item)
		case int64:
			total += item
		case float64:
			total += int64(item)
		case bool:
			if item {
				total++
			}
		}
	}
	return total
}

func texts() []string {
	cases, err := os.ReadFile("cases.txt")
	check(err)
	all := strings.Split(strings.TrimSuffix(string(cases), "\n"), "\n%%\n")
	for _, construct := range constructs {
		for _, value := range values {
			// What Go prints of the inside of a time is of no use to anybody.
			if strings.Contains(construct, "%d") && strings.Contains(value, "toDate") {
				continue
			}
			all = append(all, strings.ReplaceAll(construct, "@", value))
		}
	}
	return all
}

func run(text string, raw []byte) outcome {
	var data map[string]interface{}
	check(json.Unmarshal(raw, &data))
	parsed, err := template.New("case").Option("missingkey=zero").Funcs(functions).Parse(text)
	var out strings.Builder
	if err == nil {
		err = parsed.Execute(&out, data)
	}
	if err != nil {
		return outcome{Text: text, Error: err.Error()}
	}
	return outcome{Text: text, Output: out.String()}
}

func main() {
	raw, err := os.ReadFile("data.json")
	check(err)
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	for _, text := range texts() {
		// One to a line, so that changes can be read.
		check(encoder.Encode(run(text, raw)))
	}
	lines := strings.ReplaceAll(strings.TrimSuffix(encoded.String(), "\n"), "\n", ",\n")
	check(os.WriteFile("expected.json", []byte("[\n"+lines+"\n]\n"), 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
