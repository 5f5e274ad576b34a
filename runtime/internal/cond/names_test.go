package cond_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
)

// Names that JavaScript gives every object, and others, as keys of data: each is undefined
// where it is missing, counted where it is a word, and kept where it is a key.
func TestEveryNameIsData(t *testing.T) {
	e := open(t, cond.Options{})
	names := []string{
		"constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable",
		"__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "prototype", "length", "then", "toJSON", "",
		"a", "0", "-1", "a b", "ä", "😀", "null", "undefined", "$x", "\u0001",
	}
	for _, name := range names {
		key, _ := json.Marshal(name)
		vars := values{"payload": `{"id":1}`, "word": string(key), "counts": `{}`, "has": fmt.Sprintf(`{%s:{"z":1}}`, key)}
		for src, want := range map[string]string{
			`$payload[$word]`:                       "",
			`$has[$word].z`:                         "1",
			`($counts[$word] ?? 0) + 1`:             "1",
			`({...$counts, [$word]: {z: 1}})`:       fmt.Sprintf(`{%s:{"z":1}}`, key),
			`({...$has})`:                           fmt.Sprintf(`{%s:{"z":1}}`, key),
			`Object.keys($has)`:                     fmt.Sprintf(`[%s]`, key),
			`$word in $payload`:                     "false",
			`Object.hasOwn($has, $word)`:            "true",
			`Object.assign({}, $has)`:               fmt.Sprintf(`{%s:{"z":1}}`, key),
			`Object.fromEntries([[$word, {z: 1}]])`: fmt.Sprintf(`{%s:{"z":1}}`, key),
			`[$word, $word].reduce((m, w) => { m[w] = (m[w] ?? 0) + 1; return m }, {})`: fmt.Sprintf(`{%s:2}`, key),
		} {
			if name == "toJSON" && want != "" && want[0] == '{' {
				continue // an object whose toJSON is data is the same to JSON.stringify
			}
			got, err := eval(t, e, src, vars)
			if err != nil {
				t.Errorf("%q: %s: %v", name, src, err)
				continue
			}
			if diff := cmp.Diff(decoded(t, want), decoded(t, string(got.JSON))); diff != "" {
				t.Errorf("%q: %s: got %s, want %s", name, src, got.JSON, want)
			}
		}
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if text == "" {
		return "undefined"
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// Whole numbers over 2^53 keep their digits and are equal only to themselves.
func TestWholeNumbers(t *testing.T) {
	e := open(t, cond.Options{})
	for _, n := range []string{"9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "18446744073709551616", "1234567890123456789012345678901234567890"} {
		vars := values{"q": `{"id":` + n + `,"list":[` + n + `,1]}`, "a": n, "b": n, "one": "1", "other": n + "0"}
		for src, want := range map[string]string{
			`$q.id`:                           n,
			`({...$q}).id`:                    n,
			`$q.list.map(x => x)`:             `[` + n + `,1]`,
			`$q.list.filter(x => x === $a)`:   `[` + n + `]`,
			`$a === $b`:                       "true",
			`$a === $other`:                   "false",
			`$q.list.includes($a)`:            "true",
			"`${$a}`":                         `"` + n + `"`,
			`String($a)`:                      `"` + n + `"`,
			`({ a: [$q.id], b: 'text' })`:     `{"a":[` + n + `],"b":"text"}`,
			`$a > $one || $a < $one`:          "true",
			`typeof Number($a)`:               `"number"`,
			`$one + 1`:                        "2",
			`JSON.stringify({ a: 1 }) === ''`: "false",
		} {
			got, err := eval(t, e, src, vars)
			if err != nil || string(got.JSON) != want {
				t.Errorf("%s: %s: got %s %v, want %s", n, src, got.JSON, err, want)
			}
		}
	}
	got, err := eval(t, e, `$a === $b`, values{"a": "9007199254740992", "b": "9007199254740993"})
	if err != nil || string(got.JSON) != "false" {
		t.Errorf("two ids are equal: %s %v", got.JSON, err)
	}
}
