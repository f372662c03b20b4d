package main

import (
	"fmt"
	"strings"
)

// Expressions about the inside of functions.
func extra() []string {
	var out []string
	add := func(format string, parts ...any) { out = append(out, fmt.Sprintf(format, parts...)) }
	lines := func(text string) {
		for _, line := range strings.Split(text, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	for _, verb := range strings.Fields("v +v #v T t d b o O x X c q U e E f F g G s p w z") {
		for _, flags := range []string{"", "+", "-", "#", "0", " ", "8", "-8", "08", "+08", ".2", "8.3", "#8.3", ".0", "+.3", "020.5"} {
			if (verb == "+v" || verb == "#v") && flags != "" {
				continue
			}
			if verb == "p" {
				continue
			}
			for _, value := range []string{`"héllo"`, `42`, `-7`, `(int64 65)`, `1.5`, `-0.0`, `1234567.0`, `.Values.float`, `true`, `nil`, `(list 1 "a" nil)`, `(dict "a" 1.5)`, `1i`, `'x'`, `(index "abc" 1)`, `""`} {
				add(`printf "%%%s%s" %s`, flags, verb, value)
			}
		}
	}
	for _, format := range []string{"%", "%%", "%d %d", "%[2]d %[1]d", "%[3]d", "%[x]d", "%*d", "%-*d", "%.*f", "%.[2]*f", "%!", "%d%", "%é", "a%vb%vc", "%5", "%.", "%[1]", "%[1]*d", "%6.2f|%-6d|", "%1000001d", "% x", "%#x", "% #x", "%-010d", "%x"} {
		for _, args := range []string{"", `1`, `1 2`, `2 1.5`, `"a" "b" "c"`, `5 42`, `"abc" nil`} {
			add(`printf %q %s`, format, args)
		}
	}
	for _, number := range []string{"1e6", "1e5", "123456.0", "1234567.0", "1e20", "1e21", "1e-4", "1e-5", "0.1", "100.0", "1e100", "3.0", "-0.0", "5e-324", "1.7976931348623157e308", "0.000001", "1e-7", "123456789.123"} {
		for _, function := range []string{"toJson", "toYaml", "toYamlPretty", "toToml", "toString", "print", "int64", "floor", "add1f", "quote"} {
			add(`%s %s`, function, number)
		}
		add(`dict "a" %s | toToml`, number)
		for _, verb := range strings.Fields("e f g G x b E #g .3g .10g 12.4e .0f #.0f .3x") {
			add(`printf "%%%s" %s`, verb, number)
		}
	}
	for _, text := range []string{"0x1F", "0b11", "0o17", "017", "1_000", "1__0", "_1", "1.0", "1.00", "1.10", ".0", "1.", "+5", "-5", " 5", "5 ", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e3", "inf", "-Inf", "nan", "infinity", "0x1p4", "0x1.8p1", "1e400", "1.5e3", "+1.5", "true", "०१", "99999999999999999999", "0x", "0", "-0", "08"} {
		for _, function := range []string{"int", "int64", "float64", "atoi", "toDecimal", "duration", "durationRound", "semver", "fromYaml", "fromJson", "mustFromJson"} {
			add(`%s %q`, function, text)
		}
		add(`quote (float64 %q)`, text)
		add(`add %q 1`, text)
		add(`addf %q 1`, text)
	}
	words := []string{"HTTPServer", "firstName", "first_name", "http2xx", "HTTP20xOK", "Duration2m3s", "Bld4Floor3rd", "GO PATH", "GO-PATH", "_foo_", "--a--b", "a.b.c", "ABCDef", "aB", "A", "", "世界Hello", "hello世界", "éÀ", "ﬀ", "ǆ", "ß", "İi", "x1y2", "12ab", "ab12", "ab 12 cd", "AAAbbb", "a__b", "!a!b", "hello world foo", "\ttab\nnew", "a b  c", "x\u00a0y", "ŁÓDŹ", "don't stop", "1st place", "NoHTTPS", "_complex__case_", "mixed-CASE_words here"}
	for _, word := range words {
		for _, function := range strings.Fields("snakecase kebabcase camelcase title untitle initials swapcase upper lower nospace trim quote squote urlquery html js toYaml toJson b64enc b32enc regexQuoteMeta toYamlPretty trunc") {
			if function == "trunc" {
				add(`trunc 3 %q`, word)
				add(`trunc -3 %q`, word)
				continue
			}
			add(`%s %q`, function, word)
		}
		for _, width := range []int{1, 3, 4, 5, 7, 10} {
			add(`abbrev %d %q`, width, word)
			add(`wrap %d %q`, width, word)
			add(`wrapWith %d "|" %q`, width, word)
			add(`abbrevboth 5 %d %q`, width, word)
			add(`substr 1 %d %q`, width, word)
		}
	}
	for _, text := range []string{"YWJj", "YWJjZA==", "YWJjZA=", "YWJjZA", "YW Jj", "YW\nJj", "Y", "YW", "YWJ", "====", "YWJj!", "YWJjZA==x", "=", "Y===", "YWJjZGU=", "YQ==\n", "YQ\n==", "MFRGG===", "MFRGG", "MFRGGZA=", "MFRGGZDF", "mfrgg===", "MFRGG==", "MFRA====", "A=======", "MFRGG===A", "M", "MF", "MFR\nGG===", "MFRGGZDFM"} {
		add(`b64dec %q`, text)
		add(`b32dec %q`, text)
	}
	lines(functionsText)
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "Mon Jan _2 15:04:05 MST 2006", "Monday, 02-Jan-06 15:04:05 MST", "3:04PM", "3:04:05.000 pm", "2006 002 __2", "January 2, 2006", ".999999999", "05.00 05.99", "-0700 -07:00 -07 -07:00:00 -070000", "Z0700 Z07 Z07:00:00", "1/2/06 _2006 4 5 03", "Janus Month Mons", "20060102150405", "15h 2006-1-2", "", "text only", "01 02 03 04 05 06", "2 12 22 002 0", "PMpm AMam"} {
		for _, when := range []string{"0", "1136214245", "-1", "1700000000", "4102444800", "-62135596800", "951782400"} {
			add(`date %q (int64 %s)`, layout, when)
			for _, zone := range []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC", "", "Local", "Nowhere/City", "Etc/GMT+5"} {
				add(`dateInZone %q (int64 %s) %q`, layout, when, zone)
			}
		}
	}
	times := [][2]string{{"2006-01-02", "2020-02-29"}, {"2006-01-02", "2019-02-29"}, {"2006-01-02", "2020-1-2"}, {"2006-1-2", "2020-01-02"}, {"2006-01-02T15:04:05Z07:00", "2020-01-02T03:04:05Z"}, {"2006-01-02T15:04:05Z07:00", "2020-01-02T03:04:05.123456789+02:00"}, {"2006-01-02 15:04:05 -0700 MST", "2020-01-02 03:04:05 +0100 CET"}, {"2006-01-02 MST", "2020-01-02 CET"}, {"2006-01-02 MST", "2020-01-02 UTC"}, {"2006-01-02 MST", "2020-01-02 GMT+3"}, {"Mon Jan _2 2006", "Thu Jan  2 2020"}, {"Monday January 2 2006", "thursday JANUARY 2 2020"}, {"3:04 PM", "12:30 AM"}, {"3:04 PM", "12:30 PM"}, {"3:04PM", "13:30PM"}, {"15:04", "24:00"}, {"2006 002", "2020 060"}, {"2006 002", "2019 366"}, {"06-01-02", "69-01-02"}, {"06-01-02", "68-01-02"}, {"2006-01-02", "2020-01-02x"}, {"2006-01-02", ""}, {"", ""}, {"15:04:05.000", "10:11:12.345"}, {"15:04:05.000", "10:11:12.3456"}, {"15:04:05", "10:11:12,5"}, {"15:04:05.999", "10:11:12"}, {"2006-01-02 -07:00", "2020-01-02 +25:00"}, {"2006 01", "2020  01"}, {"2006  01", "2020 01"}, {"2006-13-02", "2020-13-02"}, {"2006-01-02", "2020-13-02"}, {"2006-01-02", "2020-00-02"}, {"Jan 2", "Foo 2"}}
	for _, pair := range times {
		add(`toDate %q %q | toString`, pair[0], pair[1])
		add(`mustToDate %q %q | toString`, pair[0], pair[1])
		add(`(toDate %q %q).Unix`, pair[0], pair[1])
	}
	for _, text := range []string{"1h", "1h30m", "-1.5h", "1m1s1ms1us1ns", "1µs", "100", "0", "", ".5s", "1.s", ".s", "1x", "1h-1m", "+5s", "9223372036854775807ns", "9223372036854775808ns", "2540400h", "1e3s", "1.123456789123s", "720h", "8761h", "59s", "60s", "61s", "25h"} {
		add(`durationRound %q`, text)
		add(`dateModify %q (toDate "2006-01-02" "2020-01-01") | toString`, text)
		add(`mustDateModify %q (toDate "2006-01-02" "2020-01-01") | toString`, text)
	}
	for _, seconds := range []string{"0", "1", "59", "60", "3600", "86400", "90061", "-5", "99999999999", "1.5", "abc"} {
		add(`duration %q`, seconds)
		add(`duration (int64 (int %q))`, seconds)
		add(`durationRound (int64 (mul (int %q) 1000000000))`, seconds)
	}
	regexes(add)
	versions(add)
	return out
}

func regexes(add func(string, ...any)) {
	patterns := []string{`a+`, `a*`, `^a`, `c$`, `[a-z]+`, `[\w-\.]+`, `[a-z0-9-_.]+`, `\d+`, `\D+`, `\s`, `\S+`, `\w+`, `\W`, `\bfoo\b`, `a{2}`, `a{2,}`, `a{,2}`, `{foo}`, `x{`, `}`, `]`, `[]a]`, `[^]a]`, `[[:alpha:]]+`, `[[:^digit:]]`, `[[:foo:]]`, `[a-\d]`, `[z-a]`, `(?i)FOO`, `(?i:f)OO`, `(?P<n>o+)`, `(?<n>o+)`, `(?x) a`, `(?s).`, `(?m)^b`, `(?U)a+`, `(?-i)a`, `(?:)`, `()`, `(`, `)`, `a**`, `a+*`, `a??`, `*a`, `+`, `a|`, `|b`, `(|a)`, `\pL+`, `\p{Greek}`, `\P{L}`, `\p{^L}`, `\pX`, `\p{Foo}`, `\Qa.b\E`, `\Q`, `\x41`, `\x{41}`, `\x`, `\101`, `\1`, `\0`, `\z`, `\Z`, `\A`, `\C`, `\<`, `\>`, `\-`, `\_`, `\e`, `\a`, `\u0041`, `[&&a]`, `[a&&b]`, `[a--b]`, `[[a]`, `[~~]`, `a{1001}`, `a{1000}`, `a{2,1}`, `(a{2}){3}`, `.`, `.*`, `\.`, `[.]`, `[^a]`, `é`, `[é-ü]`, `a$b`, `^$`, `\B`, `x*`, `(?i)k`, `(a)(b)?`, `\`, `[\]`, `[a`, `(?P<1>a)`, `(?P<>a)`, `(?P<n>a)(?P<n>b)`, `a{0}`, `a{0,0}`, `\x{110000}`, `^(([0-9]+)\.)+$`, `[\d\-x]+`, `[-a]`, `[a-]`, `[\x41-\x43]`, `\/`, `"`, `a#b`, ` a`, `(?ii)a`, `(?)`, `(?i`, `(?i-s:a)`, `\pN`, `[\pL\d]+`, `[^\d\s]+`, `[\D]`, `[[:word:]-]+`}
	texts := []string{"abc", "aaa foo bar", "", "FOO foo_bar-baz.qux 123", "a.b{foo}]x", "é ü α\nb", "aXbXc", "AB\tcd"}
	for _, pattern := range patterns {
		for _, text := range texts {
			add("regexMatch `%s` %q", pattern, text)
			add("mustRegexFind `%s` %q", pattern, text)
			add("regexFindAll `%s` %q -1", pattern, text)
			add("regexReplaceAll `%s` %q `<$0|$1|${n}|$n_x|$$|$|${|$x$>`", pattern, text)
			add("regexSplit `%s` %q -1", pattern, text)
		}
		add("mustRegexMatch `%s` `abc`", pattern)
		for _, count := range []int{0, 1, 2, 3} {
			add("mustRegexFindAll `%s` `aXbXcaa` %d", pattern, count)
			add("mustRegexSplit `%s` `aXbXcaa` %d", pattern, count)
		}
		add("mustRegexReplaceAllLiteral `%s` `aXb` `$0$1`", pattern)
	}
}

func versions(add func(string, ...any)) {
	constraints := []string{"1.2.3", "=1.2.3", "!=1.2.3", "!=1.2", "!=1", "!=1.x", ">1.2.3", ">1.2", ">1", ">=1.2.3", "=>1.2", "<1.2.3", "<=1.2.3", "=<1.2", "<=1", "<=1.x", "~1.2.3", "~1.2", "~1", "~>1.2", "~0", "^1.2.3", "^1.2", "^1", "^0.2.3", "^0.2", "^0.0.3", "^0.0", "^0", "*", "x", "1.x", "1.2.x", "1.*", "", " ", ">=1.2-0", ">=1.2.3-0", ">1.2.3-alpha", "<2.0.0-0", "^1.2.3-beta.1", "~1.2.3-beta", "1.2.3-alpha", "1.2 - 1.4.5", "1.2-1.4", "1.2.3 - 2", ">=1.2 <2", ">=1.2, <2", ">=1.2,<2", "<1 || >2", "<1||>2", "||", "1 ||", ">=1.16-0 <1.22-0 || >=1.23", ">= 1.2.3", "> = 1", "=1.2.3+meta", "v1.2.3", ">=v1.2", "abc", "1.2.3.4", ">>1", "1.02", ">=1.2.3 abc", "^*", ">*", "!=*", "~*", "=*", ">=0-0", "^1.x.x", "1||2||3", ">0.0.0-0", "< 1.2 , > 1", "X.X.X", "|", "1.x.3", "01.2.3"}
	list := []string{"1.2.3", "1.2.4", "1.3.0", "2.0.0", "1.2.3-alpha", "1.2.3-beta.2", "1.2.4-beta", "0.2.3", "0.2.5", "0.0.3", "0.0.4", "0.3.0", "1.16.0", "1.21.5-gke.100", "v1.2.3", "1.2", "1", "1.2.3+build", "1.25.3-eks-123", "2.0.0-rc.1", "0.0.0", "", "abc", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-0", "99999999999999999999.0.0", "1.2.3-", "1.2-alpha", "v1"}
	for _, constraint := range constraints {
		for _, version := range list {
			add(`semverCompare %q %q`, constraint, version)
		}
	}
	for _, version := range append(list, "1.2.3-a.b.c+d.e", "1.2.3-rc.1", "V1", " 1", "1.2.3+01", "1.2.3-a..b", "1.2.3-x-y") {
		add(`(semver %q).Major`, version)
		add(`(semver %q).Original`, version)
		add(`(semver %q).Prerelease`, version)
		add(`(semver %q).Metadata`, version)
		add(`(semver %q).IncPatch`, version)
		add(`(semver %q).IncMinor.Original`, version)
		add(`(semver %q).IncMajor.String`, version)
		for _, other := range []string{"1.2.3", "1.2.3-alpha", "1.2.3-alpha.1", "1.2.3-2", "1.2.3-10", "1.10.0"} {
			add(`(semver %q).Compare (semver %q)`, version, other)
			add(`(semver %q).LessThan (semver %q)`, version, other)
		}
	}
}
