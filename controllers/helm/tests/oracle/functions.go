package main

import "strings"

// The values the expressions read.
const values = `
float: 2
half: 1.5
text: hello
list: [1, a, null]
map: {a: 1}
deep: {a: {b: {c: x}}}
empty: {}
"null": null
`

// One argument of every type.
var atoms = []string{
	`"abc"`, `""`, `"12"`, `"a\xffb\xc3"`, `3`, `0`, `-2`, `(int64 5)`, `.Values.float`, `1.5`, `true`, `false`, `nil`,
	`(list 3 "a" nil)`, `(list)`, `(splitList "," "b,a")`, `(dict "a" 1)`, `(dict)`, `.Values.missing`, `.Values.list`, `.Values.map`,
}

// A few atoms for functions that take long.
var fewAtoms = []string{`"abc"`, `3`, `.Values.float`, `nil`, `(list "a")`, `(dict "a" 1)`}

// How many arguments a function takes; -1 for any number.
type function struct {
	name  string
	arity int
	// A call that succeeds, from which one argument at a time is varied.
	base []string
	slow bool
}

func f(names string, arity int, base ...string) []function {
	var all []function
	for _, name := range strings.Fields(names) {
		all = append(all, function{name, arity, base, false})
	}
	return all
}

func slow(names string, arity int, base ...string) []function {
	all := f(names, arity, base...)
	for i := range all {
		all[i].slow = true
	}
	return all
}

func functions() []function {
	var all []function
	for _, some := range [][]function{
		f("hello now", 0),
		f("uuidv4", 0),
		f("trim upper lower title untitle nospace initials swapcase snakecase kebabcase camelcase", 1, `"a b"`),
		f("b64enc b64dec b32enc b32dec sha1sum sha256sum sha512sum adler32sum regexQuoteMeta", 1, `"YWJj"`),
		f("base dir clean ext isAbs osBase osDir osClean osExt osIsAbs getHostByName urlParse", 1, `"/a/b.c"`),
		f("fromJson mustFromJson fromJsonArray fromYaml fromYamlArray fromToml", 1, `"[1]"`),
		f("toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson toYaml toYamlPretty toToml", 1, `3`),
		f("toString toStrings typeOf kindOf empty int int64 float64 toDecimal ceil floor add1 add1f", 1, `3`),
		f("atoi semver fail shuffle", 1, `"12"`),
		f("first mustFirst last mustLast rest mustRest initial mustInitial reverse mustReverse uniq mustUniq compact mustCompact sortAlpha", 1, `(list 1 2)`),
		f("deepCopy mustDeepCopy not len", 1, `(dict "a" 1)`),
		f("keys values urlJoin", 1, `(dict "host" "a")`),
		f("until randAlpha randAlphaNum randNumeric randAscii randBytes", 1, `3`),
		f("duration durationRound ago htmlDate unixEpoch", 1, `"12"`),
		f("trimAll trimall trimSuffix trimPrefix contains hasPrefix hasSuffix split splitList regexMatch mustRegexMatch regexFind mustRegexFind", 2, `"a"`, `"abc"`),
		f("trunc abbrev indent nindent repeat wrap", 2, `3`, `"abc"`),
		f("join", 2, `","`, `(list 1 2)`),
		f("semverCompare", 2, `">1"`, `"2.0.0"`),
		f("typeIs typeIsLike kindIs", 2, `"string"`, `"a"`),
		f("deepEqual has mustHas append mustAppend push mustPush prepend mustPrepend ne lt le gt ge sub div mod", 2, `3`, `4`),
		f("get hasKey unset", 2, `(dict "a" 1)`, `"a"`),
		f("chunk mustChunk", 2, `2`, `(list 1 2 3)`),
		f("date htmlDateInZone dateModify date_modify mustDateModify must_date_modify toDate mustToDate", 2, `"2006"`, `"2020"`),
		f("required include tpl", 2, `"a"`, `"b"`),
		f("randInt", 2, `1`, `5`),
		f("encryptAES decryptAES buildCustomCert", 2, `"a"`, `"b"`),
		f("replace regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral", 3, `"b"`, `"c"`, `"abc"`),
		f("substr", 3, `1`, `2`, `"abc"`),
		f("abbrevboth", 3, `5`, `8`, `"abcdefghijklm"`),
		f("wrapWith", 3, `3`, `"-"`, `"abc def"`),
		f("plural", 3, `"a"`, `"b"`, `2`),
		f("splitn", 3, `","`, `2`, `"a,b,c"`),
		f("ternary", 3, `1`, `2`, `true`),
		f("set", 3, `(dict "a" 1)`, `"b"`, `2`),
		f("regexFindAll mustRegexFindAll regexSplit mustRegexSplit", 3, `"b"`, `"abc"`, `-1`),
		f("untilStep", 3, `0`, `6`, `2`),
		f("dateInZone date_in_zone", 3, `"2006"`, `3`, `"UTC"`),
		f("lookup", 4, `"v1"`, `"Pod"`, `"a"`, `"b"`),
		f("list tuple dict quote squote cat add addf mul mulf subf divf max min biggest maxf minf coalesce all any print println html js urlquery and or eq merge mustMerge mergeOverwrite mustMergeOverwrite concat index slice mustSlice without mustWithout default call dig", -1, `3`),
		f("printf", -1, `"%v"`),
		f("seq", -1, `3`, `1`, `5`),
		f("round", -1, `2.555`, `2`),
		f("pluck", -1, `"a"`, `(dict "a" 1)`),
		f("pick omit", -1, `(dict "a" 1)`, `"a"`),
		slow("bcrypt genPrivateKey", 1, `"x"`),
		slow("htpasswd", 2, `"a"`, `"b"`),
		slow("derivePassword", 5, `1`, `"pin"`, `"p"`, `"u"`, `"s"`),
		slow("genCA", 2, `3`, `1`),
		slow("genCAWithKey", 3, `"cn"`, `1`, `(genPrivateKey "ecdsa")`),
		slow("genSelfSignedCert", 4, `3`, `nil`, `nil`, `1`),
		slow("genSelfSignedCertWithKey", 5, `"cn"`, `(list "1.2.3.4")`, `(list "a.b")`, `1`, `(genPrivateKey "ecdsa")`),
		slow("genSignedCert", 5, `3`, `nil`, `nil`, `1`, `(genCAWithKey "ca" 1 (genPrivateKey "ecdsa"))`),
		slow("genSignedCertWithKey", 6, `"cn"`, `(list "1.2.3.4")`, `(list "a.b")`, `1`, `(genCAWithKey "ca" 1 (genPrivateKey "ecdsa"))`, `(genPrivateKey "ed25519")`),
	} {
		all = append(all, some...)
	}
	return all
}

// All calls with up to two arguments, and calls with more that vary one or two arguments of a good call.
func combinations() []string {
	var out []string
	call := func(parts ...string) { out = append(out, strings.Join(parts, " ")) }
	for _, function := range functions() {
		name, some := function.name, atoms
		if function.slow {
			some = fewAtoms
		}
		call(name)
		for _, a := range some {
			call(name, a)
		}
		if function.arity != 0 && function.arity != 1 && !function.slow {
			for _, a := range atoms {
				for _, b := range atoms {
					call(name, a, b)
				}
			}
		}
		if len(function.base) > 0 {
			call(append([]string{name}, function.base...)...)
			call(append([]string{name}, append(function.base, `"x"`)...)...)
		}
		for i := range function.base {
			for _, a := range some {
				parts := append([]string{name}, function.base...)
				parts[i+1] = a
				call(parts...)
				if function.slow || len(function.base) < 3 {
					continue
				}
				for j := i + 1; j < len(function.base); j++ {
					for _, b := range fewAtoms {
						two := append([]string{}, parts...)
						two[j+1] = b
						call(two...)
					}
				}
			}
		}
		if function.arity == -1 {
			for _, a := range fewAtoms {
				for _, b := range fewAtoms {
					for _, c := range fewAtoms {
						call(name, a, b, c)
					}
				}
			}
		}
	}
	return out
}
