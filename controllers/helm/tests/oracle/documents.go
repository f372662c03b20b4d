package main

import (
	"encoding/json"
	"math/rand"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// Document is a text and what it became; no result means an error.
type Document struct {
	In  string  `json:"i"`
	Out *string `json:"o,omitempty"`
}

func read(text string) Document {
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return Document{In: text}
	}
	shown := string(out)
	return Document{text, &shown}
}

func write(value any) Document {
	in, _ := json.Marshal(value)
	out, err := yaml.Marshal(value)
	if err != nil {
		return Document{In: string(in)}
	}
	shown := string(out)
	return Document{string(in), &shown}
}

var pieces = []string{"a", "b: c", "- x", "yes", "no", "0644", "1.5", "~", "null", "\"q\"", "'s'", "|", ">", ">-", "|+", "|2", "&a", "*a", "!!str", "!x", "? k", ": v", "[1, 2]", "{a: b}", "[", "]", "{", "}", ",", "#c", " #c", "---", "...", "%YAML 1.1", "<<: *a", "<<", "key:", "key: ", "- ", "-", "  ", " ", "\t", "\n", "\n", "\n", "\n  ", "\n    ", "\n- ", "a: ", "é", "😀", "\\n", "\"\\x41\"", "'it''s'", "@", "`", "1e3", "0x1F", ".inf", "2001-01-01", "a:b", "a b", "x: |\n  lit\n  eral\n", "x: >\n  fol\n  ded\n\n  more\n", "\r\n", "\u0085", "\u2028", "true", "1_000", "0o17", "12e03", ":", "?", "::", "- - a", "k: - v"}

var strings_ = []string{"", "a", "yes", "no", "on", "n", "y", "true", "null", "~", "1", "1.5", "0x1", "0644", "1e3", "1_0", ".5", "-", "- a", "a: b", "a:", ":a", "a #b", "#a", "a#", "'", "\"", "it's", "a\nb", "a\n", "\na", "a\n\n", " a", "a ", "\ta", "a\tb", "a\t\nb", "a \nb", "a\n b", "  \n", "é", "😀", "\u2028", "\u00a0", "\ufeff", "\u0085x", "a\u0085b", "\x00", "\x7f", "\x1b", "2001-01-01", "2001-1-1", "12:30", "1:20:30", "<<", "---", "...", "--- a", "-a", "?a", "? a", "!a", "&a", "*a", "|", ">", "%a", "@a", "`a", "{a", "[a", "a]", "a,b", ",a", "=", "a=b", "aaaaaaaaa bbbbbbbbbbbbbb cccccccccccccccc dddddddddddddddd eeeeeeeeeeeeee ffffffffffffff ggggggggg", "'aaaaaaaaa bbbbbbbbbbbbbb cccccccccccccccc dddddddddddddddd eeeeeeeeeeeeee  ffffffffffffff: ggg", "\"aaaaaaaaa\tbbbbbbbbbbbbbb cccccccccccccccc dddddddddddddddd  eeeeeeeeeeeeee   ffffffffffffff gg", "0b11", "0o17", "+1", "-1", "+.inf", ".nan", ".INF", "NULL", "Null", "TRUE", "Yes", "OFF", "12e4567", "99999999999999999999", "0189", "1.", "1e", "a\r\nb", "a\rb", "\r", "\b", "\\", "a\\nb", "x: |\n  y", "$a", "a/b", "2015-02-24T18:19:39Z", "2015-02-24 18:19:39", "1h", "~a", "null a", strings.Repeat("long ", 40), strings.Repeat("x", 200), strings.Repeat("k", 129) + " y"}

func documents() (reads, writes []Document) {
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 6000; i++ {
		var text strings.Builder
		for n := 1 + random.Intn(9); n > 0; n-- {
			text.WriteString(pieces[random.Intn(len(pieces))])
		}
		reads = append(reads, read(text.String()))
	}
	for _, text := range strings_ {
		reads = append(reads, read(text), read("a: "+text), read("- "+text+"\n"), read("{a: "+text+"}"), read("? "+text+"\n: 1"), read(text+": 1"), read("a: !!str "+text), read("a: !!float "+text), read("a: !!int "+text))
		writes = append(writes, write(text), write(map[string]any{text: text}), write([]any{text, map[string]any{"k": []any{text}}}), write(map[string]any{"key": map[string]any{"in": text}}))
	}
	for i := 0; i < 2500; i++ {
		writes = append(writes, write(value(random, 4)))
	}
	// What was written must be read again.
	for _, document := range writes[:len(writes):len(writes)] {
		if document.Out != nil {
			reads = append(reads, read(*document.Out))
		}
	}
	return reads, writes
}

func value(random *rand.Rand, depth int) any {
	switch kind := random.Intn(8); {
	case depth > 0 && kind < 2:
		list := []any{}
		for n := random.Intn(4); n > 0; n-- {
			list = append(list, value(random, depth-1))
		}
		return list
	case depth > 0 && kind < 5:
		object := map[string]any{}
		for n := random.Intn(5); n > 0; n-- {
			key := strings_[random.Intn(len(strings_))]
			if random.Intn(2) == 0 {
				key = []string{"a1", "a10", "a2", "a_1", "A", "b", "B1", "1", "10", "2", "x-y", "x.y", "é", "a01", "a001"}[random.Intn(15)]
			}
			object[key] = value(random, depth-1)
		}
		return object
	case kind == 5:
		return []any{nil, true, false, 1, -5, 1.5, 1e20, 1e21, 1e-7, 123456789, 0.1, 1e6, 42, 100000.5}[random.Intn(14)]
	default:
		text := strings_[random.Intn(len(strings_))]
		if random.Intn(3) == 0 {
			text += strings_[random.Intn(len(strings_))]
		}
		return text
	}
}

// Set is an assignment of one of the --set flags.
type Set struct {
	Kind string  `json:"k"`
	In   string  `json:"i"`
	Out  *string `json:"o,omitempty"`
}

type flag struct {
	kind  string
	parse func(string, map[string]any) error
}

func sets() (all []Set) {
	texts := []string{"a=1", "a.b=c", "a=1,b=2", "a={1,2}", "a={}", "a[0]=1", "a[2]=1", "a[0].b=c", "a[0][1]=x", "a=", "a", "a,b=1", "a=1,", ",", "=", "=1", "a==b", "a=b=c", "a\\,b=c", "a\\.b=c", "a=b\\,c", "a=true", "a=TRUE", "a=null", "a=0", "a=01", "a=-1", "a=+1", "a=1.5", "a={a", "a={a,b},c=d", "a={a,b}c=d", "a[-1]=1", "a[65537]=1", "a[x]=1", "a[0", "a[0]", "a[0]b=1", "a.=1", ".a=1", "a..b=1", "a.b", "a=1,a.b=2", "a.b=1,a=2", "a[0]=1,a.b=2", "a={1},a[0]=2,a[1]=3", "a[0].b=1,a[0].c=2", "a[0]=1,a[0].b=2", "a[0][0]=1,a[0][1]=2", "a[1]=x,a[0]=y", "a={},b=1", "a={1,,2}", "a={ 1, 2 }", " a = 1 ", "a=\\", "a\\=b=c", "a=b\nc=d", "é=ü", "a=9223372036854775808", "a=9223372036854775807", "a.b[0].c={x},a.b[0].d=1", "a={{1}}", "a=[1]", "a={\"x\":1}", "a=[1,2],b=3", "a=\"x,y\",b=1", "a= 1 , b=2", "a=null,b=", "a={", "a=1x", "a[0]=[1],a[1]={\"b\":2}", "a.b=\"c\"", "a=tru", "a=1 b=2", "a[0]=", "a[0]=,b=1", "a.b=", "a,", "a.b,c=1", "a[1][0].x=1", "a[0]={x,y}", strings.Repeat("a.", 29) + "b=1", strings.Repeat("a.", 31) + "b=1", "", "a=1,b", "a[ 0]=1", "a[+1]=1", "a[1_0]=1"}
	for _, text := range texts {
		for _, flag := range []flag{
			{"typed", strvals.ParseInto}, {"text", strvals.ParseIntoString}, {"json", strvals.ParseJSON}, {"literal", strvals.ParseLiteralInto},
		} {
			for _, start := range []string{"{}", `{"a":{"b":1},"c":[1]}`} {
				into := map[string]any{}
				json.Unmarshal([]byte(start), &into)
				entry := Set{Kind: flag.kind + start, In: text}
				if flag.parse(text, into) == nil {
					out, _ := json.Marshal(into)
					shown := string(out)
					entry.Out = &shown
				}
				all = append(all, entry)
			}
		}
	}
	return all
}
