// The oracle of the template functions: evaluates every function of Helm with arguments of every type, and writes
// what real Helm gave to table.json.gz. Run it after changing the cases: `go run .`
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Case is one expression and what became of it.
type Case struct {
	// Expression as it stands in a template.
	In string `json:"i"`
	// What the template printed: type, kind, text and JSON of the result. Absent when it failed.
	Out *string `json:"o,omitempty"`
}

// Table is the whole file.
type Table struct {
	// Time of the run, seconds since 1970.
	Now       int64             `json:"now"`
	Functions []Case            `json:"functions"`
	Reads     []Document        `json:"reads"`
	Writes    []Document        `json:"writes"`
	Sets      []Set             `json:"sets"`
	Values    map[string]string `json:"values"`
	// Names of all functions templates can call.
	Names []string `json:"names"`
}

const show = `{{ $r := (%s) }}{{ printf "%%T" $r }}|{{ kindOf $r }}|{{ printf "%%v" $r }}|{{ toJson $r }}`

func render(expression string) (out *string) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	text := fmt.Sprintf(show, expression)
	c := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: "v2"},
		Templates: []*chart.File{{Name: "templates/t", Data: []byte(text)}},
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		panic(err)
	}
	rendered, err := engine.Render(c, chartutil.Values{"Values": given})
	if err != nil {
		return nil
	}
	text = strings.ToValidUTF8(rendered["c/templates/t"], "\uFFFD")
	return &text
}

// names are those of sprig, Helm and Go. The program stops if one has no cases.
func names() []string {
	all := strings.Fields("and call html index slice js len not or print printf println urlquery eq ge gt le lt ne " +
		"toToml fromToml toYaml toYamlPretty fromYaml fromYamlArray toJson fromJson fromJsonArray include tpl required lookup")
	for name := range sprig.TxtFuncMap() {
		if name != "env" && name != "expandenv" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	tried := map[string]bool{}
	for _, function := range functions() {
		tried[function.name] = true
	}
	for _, name := range all {
		if !tried[name] {
			panic("no cases for " + name)
		}
	}
	return all
}

func main() {
	table := Table{Now: time.Now().Unix(), Values: map[string]string{"values": values}, Names: names()}
	seen := map[string]bool{}
	for _, expression := range append(combinations(), extra()...) {
		if seen[expression] {
			continue
		}
		seen[expression] = true
		table.Functions = append(table.Functions, Case{expression, render(expression)})
	}
	table.Reads, table.Writes = documents()
	table.Sets = sets()
	var packed bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	encoder := json.NewEncoder(zipped)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(table); err != nil {
		panic(err)
	}
	zipped.Close()
	if err := os.WriteFile("table.json.gz", packed.Bytes(), 0o644); err != nil {
		panic(err)
	}
	fmt.Println(len(table.Functions), "function cases,", len(table.Reads), "read,", len(table.Writes), "written,", len(table.Sets), "set")
}
