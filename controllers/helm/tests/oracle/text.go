package main

// Expressions one per line.
const functionsText = `
add 1 2 3
add 9223372036854775807 1
sub -9223372036854775808 1
mul 4611686018427387904 2
div -7 2
mod -7 2
div 1 0
mod 1 0
div (int64 -9223372036854775808) -1
mod (int64 -9223372036854775808) -1
addf 0.1 0.2
addf 1.1 2.2 3.3
subf 1 0.9
mulf 0.1 3
mulf 1.1 1.1 1.1
divf 1 3
divf 10 4
divf 1 0
divf -2 3
divf 1e300 1e-300
divf 1e-300 1e300
addf "a" 1
addf 1e308 1e308
mulf 1e308 10
subf 0.3 0.1
divf 7 7
round 2.5 0
round -2.5 0
round 3.14159 3
round 123.5555 -1
round 123.5555 3 0.6
round 2.675 2
round 1e20 2
round "1.55" 1
floor -1.5
ceil -1.5
floor "3.7"
max 1 5 3
min 1 -5 3
maxf 1.5 "2" true
minf 1.5 "0.2" false
maxf (float64 "nan") 1
maxf (float64 "inf") (float64 "nan")
minf (float64 "-inf") (float64 "nan")
int 1e20
int -1e20
int64 (float64 "nan")
int 3.99
int -3.99
int "3.99"
until 5
until -3
until 0
untilStep 3 6 2
untilStep 0 -6 -2
untilStep 0 6 -2
untilStep 5 0 1
untilStep 0 5 0
untilStep 1 1 1
seq 5
seq -3
seq 2 5
seq 5 2
seq 0 2 5
seq 5 -2 0
seq 0 -1 5
seq 1 0 5
seq
seq 0 2 10 4
seq 1
seq 0
seq 2 2
seq 5 1 0
list
list | len
list 1 2 3 | first
rest (list 1)
rest (list)
initial (list)
first (list)
last (list)
append (list) 1
concat (list 1) (list 2 3) (splitList "," "a,b")
concat
concat (list)
without (list 1 2 1 3) 1 3
without (list 1 "1" 1.0 (int64 1)) 1
uniq (list 1 1 "1" 1.0 (list 1) (list 1) (dict "a" 1) (dict "a" 1) nil nil)
has 1 (list 1 2)
has "1" (list 1 2)
has nil (list nil)
has (dict "a" 1) (list (dict "a" 1))
has 4 nil
slice (list 1 2 3 4) 1
slice (list 1 2 3 4) 1 3
slice (list 1 2 3 4) 0 0
slice (list 1 2 3 4) 3 1
slice (list 1 2 3 4) 5
slice (list)
slice (list) 1 2
slice (splitList "," "a,b,c") 1
slice (until 5) 1 3
slice "abc" 1
slice (list 1 2 3) "1" 2.0
slice (list 1 2 3) -1
chunk 2 (list 1 2 3 4 5)
chunk 0 (list 1 2)
chunk 5 (list 1 2)
chunk -1 (list 1 2 3)
chunk -2 (list 1 2 3)
chunk 3 (list)
chunk 0 (list)
chunk -1 (list)
reverse (list 1 2 3)
reverse (until 3)
sortAlpha (list "b" "a" 3 nil 1.5)
sortAlpha "x"
sortAlpha (splitList "," "c,b,a")
compact (list 0 1 "" "a" nil false (list) (dict))
join "," (list 1 "a" nil 2.5 true)
join "," "x"
join "-" (until 3)
join "," nil
join "" (list)
join "," (dict "a" 1)
toStrings (list 1 nil "a" (list 1))
toStrings 5
toStrings nil
toStrings (until 3)
dict
dict "a"
dict "a" 1 "b"
dict 1 2 true 3
dict "a" 1 "a" 2
get (dict "a" nil) "a"
get (dict) "a"
hasKey (dict "a" nil) "a"
pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" nil)
pick (dict "a" 1 "b" 2) "a" "c"
omit (dict "a" 1 "b" 2) "a" "c"
dig "a" "b" "d" (dict "a" (dict "b" 3))
dig "a" "c" "d" (dict "a" (dict "b" 3))
dig "a" "b" "c" "d" (dict "a" (dict "b" 3))
dig "a" "d" .Values
dig "a" "d" .Values.map
dig "deep" "a" "b" "c" "none" .Values.AsMap
dig "a" 1
dig 1 "d" (dict)
dig "a" "d" (dict "a" nil)
dig "a" "b" "d" (dict "a" nil)
set (dict) "a" (list 1)
unset (dict "a" 1 "b" 2) "a"
unset (dict) "x"
merge (dict) (dict "a" 1)
merge (dict "a" 1) (dict "a" 2 "b" 3)
merge (dict "a" "") (dict "a" 2)
merge (dict "a" nil) (dict "a" 2)
merge (dict "a" 0) (dict "a" 2)
merge (dict "a" false) (dict "a" true)
merge (dict "a" (dict "x" 1)) (dict "a" (dict "x" 2 "y" 3))
merge (dict "a" (dict)) (dict "a" (dict "x" 2))
merge (dict "a" (list 1)) (dict "a" (list 2 3))
merge (dict "a" (list)) (dict "a" (list 2 3))
merge (dict "a" 1) (dict "a" (list 2 3))
merge (dict "a" 1) (dict "a" (dict "x" 2))
merge (dict "a" (dict "x" 2)) (dict "a" 1)
merge (dict "a" "") (dict "a" (dict "x" 2))
merge (dict "a" "") (dict "a" (list 2))
merge (dict) (dict "a" nil)
merge (dict "a" 1) (dict "a" nil)
merge (dict "a" (dict "x" 2)) (dict "a" nil)
merge (dict "a" (dict "x" nil)) (dict "a" (dict "x" 5))
merge (dict "a" 1) (dict "b" 2) (dict "b" 3 "c" 4)
mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3)
mergeOverwrite (dict "a" 1) (dict "a" "")
mergeOverwrite (dict "a" 1) (dict "a" 0)
mergeOverwrite (dict "a" true) (dict "a" false)
mergeOverwrite (dict "a" 1) (dict "a" nil)
mergeOverwrite (dict "a" (dict "x" 1 "z" 0)) (dict "a" (dict "x" 2 "y" 3))
mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" (dict))
mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" nil)
mergeOverwrite (dict "a" (list 1)) (dict "a" (list 2 3))
mergeOverwrite (dict "a" (list 1)) (dict "a" (list))
mergeOverwrite (dict "a" 1) (dict "a" (list 2 3))
mergeOverwrite (dict "a" (list 1)) (dict "a" 1)
mergeOverwrite (dict "a" (list 1)) (dict "a" (dict "x" 1))
mergeOverwrite (dict "a" (dict "x" 2)) (dict "a" (list 1))
mergeOverwrite (dict "a" 1) (dict "a" (dict "x" 2))
mergeOverwrite (dict "a" (dict "x" 2)) (dict "a" 1)
mergeOverwrite (dict "a" "") (dict "a" (list))
mergeOverwrite (dict) (dict "a" (dict "b" nil))
merge .Values.empty .Values.map
mergeOverwrite (deepCopy .Values.deep) (dict "a" (dict "b" (dict "c" "y")))
deepCopy (dict "a" (list 1 (dict "b" nil)))
deepCopy nil
deepCopy (until 3)
deepCopy 1.5
deepEqual (list 1 2) (list 1 2)
deepEqual (list) (rest (list))
deepEqual 1 (int64 1)
deepEqual nil nil
deepEqual (until 2) (list 0 1)
deepEqual (dict "a" (list 1)) (dict "a" (list 1))
deepEqual (dict) .Values.missing
deepEqual (float64 "nan") (float64 "nan")
ternary "a" "b" false
default 1 ""
default 1 0
default 1 (list)
default 1 nil
default 1 2 3
default 1
default "x" (semver "1.2.3")
coalesce
coalesce nil 0 "" "a" "b"
coalesce nil
empty (semver "1.2.3")
empty (toDate "2006" "x")
all 1 "a" true
all 1 0
all
any 0 "" nil
any 0 1
any
eq 1 1
eq 1 2 1
eq 1 (int64 1)
eq 1 1.0
eq "a" nil
eq nil nil
eq (list 1) (list 1)
eq (list) nil
eq nil (list)
eq (dict) nil
eq "a" "b" "a"
eq (index "a" 0) 97
ne 1 nil
ne nil nil
lt 1 2
lt "a" "b"
lt 1.5 2.5
lt 1 1.5
lt true false
le 2 2
gt (int64 3) 2
ge "b" "a"
lt (index "a" 0) 98
lt -1 (index "a" 0)
index (list 1 2 3) 1
index (list 1 2 3) 3
index (list 1 2 3) -1
index (list 1 2 3) 1.0
index (list 1 2 3) "1"
index (list 1 2 3) nil
index (list 1 2 3) (int64 1)
index (dict "a" (list 1 (dict "b" 2))) "a" 1 "b"
index (dict "a" 1) "b"
index (dict "a" 1) 1
index (dict "a" 1) nil
index "abc" 1
index "abc" 5
index nil 1
index (list 1)
index 5 1
index .Values "map" "a"
index .Values.missing "a"
index (split "," "a,b") "_0"
index (split "," "a,b") "_9"
index (list nil) 0 "a"
index (dict "a" nil) "a" "b"
len "héllo"
len (dict "a" 1)
len nil
len 5
len (semver "1.2.3")
not nil
not "a"
not (list)
print 1 2 "a" 3 4
print "a" "b" 1 2
print nil nil
print (list 1 "a" nil) (dict "a" (dict "b" nil))
println 1 "a" nil
print (semver "1.2.3")
print (toDate "2006-01-02" "2020-05-06")
print .Values.deep
print (splitList "," "a,b")
print (index "abc" 0)
print 1e6 0.1 100000000
print true 1i
html "<a href=\"x\">'&\x00"
html nil
html 1 2 "a"
html (list "<" 1)
js "'\"<>&=\\\n\t\x01é\u2028"
js nil "a"
urlquery "a b&c=d/é~-_.*"
urlquery nil
urlquery 1 2
quote "a\"b\\c\n\t\x00é\u2028\xff😀"
quote 1 nil "a" true
quote nil
quote
quote (list "a" 1)
squote "a'b" 1 nil 1.5
squote (dict "a" 1)
cat "a" 1 nil "b" 2.5
cat
cat nil
cat "  a" "b  "
cat "%d" "x"
trim " \t\n\u00a0a b\u3000 "
trim "\xff a \xff"
trimAll "abc" "cabxbca"
trimAll "" "abc"
trimAll "é" "éaé"
trimSuffix "c" "abcc"
trimPrefix "a" "aabc"
trimSuffix "" "abc"
repeat 3 "ab"
repeat 0 "ab"
repeat -1 "ab"
repeat 5 ""
indent 2 "a\nb\n"
indent 0 "a\nb"
nindent 4 "a\n\nb"
indent -1 "a"
nindent 2 ""
replace "" "-" "abc"
replace "" "-" ""
replace "a" "" "banana"
replace "aa" "b" "aaaaa"
replace "" "x" "é\xff"
contains "" "abc"
contains "bc" "abc"
hasPrefix "" ""
split "," "a,b,,c"
split "" "abé\xff"
split "," ""
splitList "," ""
splitList "" "abc"
splitList "" ""
splitList "--" "a--b--"
splitn "," 2 "a,b,c"
splitn "," 0 "a,b,c"
splitn "," -1 "a,b,c"
splitn "" 2 "abc"
splitn "," 9 "a"
substr 0 2 "abc"
substr -1 2 "abc"
substr 1 -1 "abc"
substr 1 99 "abc"
substr 5 99 "abc"
substr 2 1 "abc"
substr -1 -1 "abc"
substr -1 5 "abc"
substr 0 0 "abc"
trunc 0 "abc"
trunc 2 "é"
trunc -1 "é"
trunc -9223372036854775808 "abc"
plural "one" "many" 1
plural "one" "many" 0
base "/a/b/"
base "///"
base ""
base "a"
dir "/a/b/"
dir "a"
dir ""
dir "/"
dir "//a//b"
dir "../a"
clean "/../a/./b//../c/"
clean "../../a"
clean ""
clean "a/../.."
clean "/.."
clean "./a"
ext "a.tar.gz"
ext "/a.b/c"
ext ".bashrc"
ext "a."
isAbs "/a"
isAbs "a"
fromJson "{\"a\":[1,2.5,null,true,\"x\"]}"
fromJson "[1]"
fromJson "null"
fromJson "{\"a\":1}x"
fromJsonArray "[1,\"a\",{\"b\":null}]"
fromJsonArray "null"
mustFromJson "1"
mustFromJson "\"\\ud83d\\ude00\\ud800x\""
mustFromJson "\"\\u00e9\\/\\b\\f\\n\\r\\t\""
mustFromJson "[1,]"
mustFromJson "{\"a\":1,\"a\":2}"
mustFromJson "01"
mustFromJson "-"
mustFromJson "1e400"
mustFromJson " [ ] "
mustFromJson "\"a\tb\""
mustFromJson "\"\xff\""
mustFromJson "tru"
mustFromJson "-0"
mustFromJson "12345678901234567890"
fromYaml "a: 1\nb: [x, y]"
fromYaml "- a"
fromYaml ""
fromYaml "null"
fromYaml "a: b: c"
fromYaml "a: .nan"
fromYaml "? [a]\n: b"
fromYaml "~: 1"
fromYaml "a: &x 1\nb: *x\nc: *y"
fromYaml "x"
fromYaml "1"
fromYaml "{a: 1"
fromYaml "a: 1\n---\nb: 2"
fromYaml "\ta: 1"
fromYaml "a: !!binary aGVsbG8="
fromYaml "a: !!int x"
fromYaml "a: !!str 1"
fromYamlArray "- 1\n- a"
fromYamlArray "a: 1"
fromYamlArray ""
fromYamlArray "x: y: z"
toYaml (dict "a" nil "b" (list) "c" (dict) "d" (list 1 (list 2 (list 3))) "e" "x: y")
toYaml (list (dict "a" 1 "b" (list 1 2)) "x" nil)
toYaml "multi\nline\n"
toYaml nil
toYaml (semver "1.2.3")
toYaml (toDate "2006-01-02" "2020-05-06")
toYaml (rest (list))
toYaml (float64 "nan")
toYaml (float64 "inf")
toYaml 1i
toYaml .Values.missing
toYaml (dict "b10" 1 "b9" 2 "a" 3 "A" 4 "_" 5 "1" 6 "é" 7 "b-1" 8 "b_1" 9 "b1" 0)
toYamlPretty (dict "a" nil "b" (list) "c" (dict) "d" (list 1 (list 2 (dict "x" (list 3)))) "e" "x: y")
toYamlPretty (list (dict "a" 1 "b" (list 1 2)) "x" nil)
toYamlPretty "a\tb"
toYamlPretty "a\tb\nc"
toYamlPretty "a\xffb"
toYamlPretty (rest (list))
toYamlPretty (dict "b10" 1 "b9" 2 "a" 3 "A" 4 "1a" 6 "1" 7 "é" 7 "b1c" 8 "b1_" 9 "b1" 0)
toYamlPretty (dict "long" "aaaaaaaaa bbbbbbbbbbbbbb cccccccccccccccc dddddddddddddddd eeeeeeeeeeeeee ffffffffffffff ggggggggg hhhhhhhhh")
toYaml (dict "long" "aaaaaaaaa bbbbbbbbbbbbbb cccccccccccccccc dddddddddddddddd eeeeeeeeeeeeee ffffffffffffff ggggggggg hhhhhhhhh")
toYamlPretty (semver "1.2.3")
toYamlPretty (float64 "nan")
toJson "<a>&\u2028\x7f\x01é😀\xff"
toRawJson "<a>&\u2028\x7f\x01é😀\xff"
toPrettyJson (dict "a" (list 1 (dict)) "b" (list) "c" "x{[,:\"")
toPrettyJson "x"
toJson (rest (list))
toJson (float64 "inf")
mustToJson (float64 "inf")
toRawJson (float64 "inf")
toPrettyJson (float64 "inf")
toJson 1i
toJson (semver "1.2.3")
toJson (toDate "2006-01-02" "2020-05-06")
toJson (dict "b" 1 "a" 2)
toToml (dict "a" 1 "b" "x\"y\n\\" "c" 1.5 "d" true "e" (list 1 2) "f" (list "a" "b") "g" (dict "h" (dict "i" 1)))
toToml (dict "t" (list (dict "a" 1) (dict "b" 2)) "z" 1)
toToml (dict "a b" 1 "c.d" 2 "" 3 "é" 4 "x-y_z" 5)
toToml (dict "a" nil "b" (list) "c" (dict))
toToml (dict "a" (list 1 nil))
toToml (dict "a" (list (dict "x" 1) 2))
toToml (dict "a" (list (list 1 2) (list "a")))
toToml (dict "a" (list (dict "x" (dict "y" 1) "z" 2)))
toToml (dict "a" (dict "b" (dict) "c" (list (dict "d" 1))))
toToml (list 1 2)
toToml (list (dict "a" 1))
toToml "x"
toToml 1
toToml nil
toToml (dict)
toToml (dict "a" (semver "1.2.3"))
toToml (dict "a" (toDate "2006-01-02" "2020-05-06"))
toToml (dict "a" (dict "x" 1) "b" 2 "c" (dict))
toToml (dict "a" "\x00\x1f\x7f\xffé😀\u2028\t\b\f\r")
toToml (dict "a" (list (list (dict "x" 1 "y" nil "n" (dict)))))
toToml (dict "a" (rest (list)))
fromToml "a = 1\nb = \"x\"\n[c]\nd = [1, 2]\n[[e]]\nf = 1.5\n[[e]]\ng = true"
fromToml "a = 1979-05-27T07:32:00Z"
fromToml "a = 1979-05-27"
fromToml "a = 07:32:00"
fromToml "a = 1979-05-27T07:32:00"
fromToml "a = 0x1F\nb = 0o17\nc = 0b11\nd = 1_000\ne = inf\nf = -nan\ng = 1e3\nh = +5"
fromToml "a.b.c = 1\na.d = 2"
fromToml "a = {b = 1, c = {d = 2}}"
fromToml "a = \"\"\"\nx\ny\"\"\"\nb = 'a\\b'\nc = '''\nraw\\n'''"
fromToml "a = 1\na = 2"
fromToml "a ="
fromToml "[a]\n[a]"
fromToml ""
fromToml "\"a b\" = 1\n'c' = 2"
fromToml "a = [1, \"x\", [2]]"
fromToml "a = \"\\u00e9\\n\""
fromToml "a = 9223372036854775808"
fromToml "# c\na = 1 # d"
fromToml "x"
urlParse "http://user:pa%20ss@host.com:8080/p/a%2Fth?q=1&b=2#frag%20x"
urlParse "https://example.com"
urlParse "mailto:a@b.c"
urlParse "/a/b?c"
urlParse "//host/path"
urlParse "host:80"
urlParse "1host:80/x"
urlParse ""
urlParse "*"
urlParse "http://[::1]:80/"
urlParse "http://[::1%25eth0]/"
urlParse "http://a b/"
urlParse "http://%zz/"
urlParse "http://h/%zz"
urlParse "http://h:x/"
urlParse "http://h?"
urlParse "http://h/#"
urlParse "HTTP://H/P"
urlParse ":x"
urlParse "a\nb"
urlParse "http://u@h"
urlParse "http://:p@h"
urlParse "http://u:p@h@i"
urlParse "x:/a"
urlParse "x:a?b#c"
urlParse "http://h/a+b?c+d#e+f"
urlParse "http://é/ü"
urlParse "http://[::1"
urlJoin (dict "scheme" "http" "host" "h:80" "path" "/p" "query" "q=1" "fragment" "f x" "userinfo" "u:p")
urlJoin (dict "host" "h" "path" "p")
urlJoin (dict "scheme" "mailto" "opaque" "a@b")
urlJoin (dict "path" "a:b")
urlJoin (dict "path" "/a b?c")
urlJoin (dict "host" "h" "path" "/ü")
urlJoin (dict)
urlJoin (dict "host" 1)
urlJoin (dict "host" nil)
urlJoin (dict "host" "h" "userinfo" "a b:c")
urlJoin (dict "scheme" "s" "host" "a b")
urlJoin (urlParse "http://u:p@h:1/p/a%2Fb?q#f")
derivePassword 1 "long" "password" "user" "example.com"
derivePassword 1 "maximum" "password" "user" "example.com"
derivePassword 2 "medium" "password" "user" "example.com"
derivePassword 1 "short" "p" "u" "s"
derivePassword 1 "basic" "p" "u" "s"
derivePassword 1 "pin" "" "" ""
derivePassword 1 "none" "p" "u" "s"
decryptAES "key" (encryptAES "key" "plaintext")
decryptAES "a key of far more than thirty-two bytes in length" (encryptAES "a key of far more than thirty-two bytes in length" "")
decryptAES "key" "MDAwMDAwMDAwMDAwMDAwMA=="
decryptAES "key" "MDAw"
decryptAES "key" "!"
decryptAES "secretkey" "30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ="
htpasswd "a:b" "c"
adler32sum "hello world"
adler32sum ""
genPrivateKey "nope"
genPrivateKey "ecdsa"
genPrivateKey "ed25519"
genPrivateKey "rsa" | trunc 31
(genCA "ca" 365).Cert | trunc 27
(genSignedCertWithKey "x" (list "1.2.3.4") (list "a.b") 1 (genCAWithKey "ca" 1 (genPrivateKey "ed25519")) (genPrivateKey "ecdsa")).Key | trunc 30
genSelfSignedCertWithKey "x" (list "nope") nil 1 (genPrivateKey "ecdsa")
genSelfSignedCertWithKey "x" (list 1) nil 1 (genPrivateKey "ecdsa")
genSelfSignedCertWithKey "x" nil (list 1) 1 (genPrivateKey "ecdsa")
genSelfSignedCertWithKey "" nil (list "a") 1 (genPrivateKey "ecdsa")
genCAWithKey "x" 1 "no pem"
randAlphaNum -1
randAlphaNum 0
randInt 5 5
randInt 5 1
randInt 3 4
shuffle ""
typeOf (toDate "2006" "2020")
kindOf (toDate "2006" "2020")
typeOf (semver "1.2.3")
kindOf (semver "1.2.3")
typeOf (genCAWithKey "x" 1 (genPrivateKey "ecdsa"))
typeOf .Values
kindOf .Values
typeOf .Values.map
typeOf (set .Values "a" 1)
typeOf (until 2)
typeOf (split "," "a")
typeOf (chunk 1 (list 1))
typeOf 'a'
typeOf 1i
typeIsLike "semver.Version" (semver "1.2.3")
(toDate "2006-01-02" "2020-05-06").Year
(toDate "2006-01-02" "2020-05-06").Month
(toDate "2006-01-02" "2020-05-06").Weekday
(toDate "2006-01-02" "2020-05-06").YearDay
(toDate "2006-01-02 15:04:05" "2020-05-06 01:02:03").Hour
(toDate "2006-01-02" "2020-05-06").UnixNano
(toDate "2006-01-02" "2020-05-06").IsZero
(toDate "2006-01-02" "x").IsZero
(toDate "2006-01-02" "2020-01-31").AddDate 0 1 0 | toString
(toDate "2006-01-02" "2020-05-06").Format "Jan 2006"
(toDate "2006-01-02" "2020-05-06").Sub (toDate "2006-01-02" "2020-05-05")
(toDate "2006-01-02" "2020-05-06").Before (toDate "2006-01-02" "2020-05-05")
((toDate "2006-01-02" "2020-05-06").Sub (toDate "2006-01-02" "2020-05-05")).Hours
(toDate "2006-01-02" "2020-05-06").String
unixEpoch (toDate "2006-01-02" "2020-05-06")
htmlDate (toDate "2006-01-02" "2020-05-06")
htmlDate 0
htmlDateInZone 0 "Asia/Tokyo"
htmlDateInZone (toDate "2006-01-02" "2020-05-06") "America/New_York"
date "2006" "x"
date "2006" 1.5
`
