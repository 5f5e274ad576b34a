package abitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// texts are texts that a guest may convert incorrectly: quotes, control characters, each
// length of UTF-8, the ends of the ranges, and every length around a word, because texts
// are copied in words of eight bytes.
var texts = sync.OnceValue(func() []string {
	list := []string{
		"", " ", `"`, `\`, `\"`, "/", "\x00", "a\x00b", "\b\t\n\f\r", "\x1f\x7f", "\u0080", "é", "é", "ß→ẞ", "\u07ff\u0800", "✓", "\ud7ff\ue000", "\ufeffbom", "\ufffd", "\uffff",
		"\u2028\u2029", "\U00010000", "😀", "👩‍👩‍👧", "\U0010ffff", "שלום", "日本語テキスト", "</script>&<>", "{{secret.TOKEN}}", "$run", "null", "1e5", `\u0041`,
	}
	for n := range 18 {
		list = append(list, strings.Repeat("x", n), strings.Repeat("x", n)+"é✓😀")
	}
	return append(list, strings.Repeat("héllo ✓ 😀 \n\"", 4000))
})

// numbers are those that GUEST.md requires: integers to 2^53 and decimal fractions to 15
// digits.
var numbers = []string{
	"0", "1", "-1", "10", "255", "256", "65536", "2147483647", "-2147483648", "4294967296", "1772366400123", "9007199254740991", "-9007199254740991", "9007199254740992",
	"0.5", "0.1", "-2.25", "3.14159265358979", "123456789.012345", "0.000001", "99.99", "1e3", "1.5E+2", "25e-2", "-0.000123456789",
}

// echoChecks use the step type kit_echo.
var echoChecks = []check{
	{"A1.2", "texts are returned unchanged, without escapes", func(j *judge) {
		for _, text := range texts() {
			j.echo(encode(text), text)
		}
	}},
	{"A1.2", "texts are returned unchanged, with escapes", func(j *judge) {
		for _, text := range texts()[:len(texts())-1] {
			j.echo([]byte(escaped(text)), text)
		}
		j.echo([]byte(`"\/\u00e9\u00E9\ud83d\uDE00"`), "/éé😀")
	}},
	{"A1.2", "numbers are returned with their value", func(j *judge) {
		for _, number := range numbers {
			j.echo([]byte(number), json.Number(number))
			j.echo([]byte("["+number+" , { \"n\" : "+number+" } ]"), must(`[`+number+`,{"n":`+number+`}]`))
		}
	}},
	{"A1.2", "values of every kind are returned", func(j *judge) {
		for _, text := range []string{
			`null`, `true`, `false`, `[]`, `{}`, `[[],{},null,false,0,""]`, `{"":{"":""},"a b":1,"é":2,"\"":3,"a":{"b":[{"c":null}]}}`,
			`{"type":"x","fields":{},"error":{"code":"trap"},"ok":1,"output":2}`, "[\n\t1 ,\r2 ]",
		} {
			j.echo([]byte(text), must(text))
		}
	}},
	{"A1.2", "values with a depth of 60 are returned", func(j *judge) {
		for _, text := range []string{
			strings.Repeat("[", 60) + "1" + strings.Repeat("]", 60),
			strings.Repeat(`{"a":`, 60) + `"é"` + strings.Repeat("}", 60),
		} {
			j.echo([]byte(text), must(text))
		}
	}},
	{"A1.2", "long lists and objects are returned", func(j *judge) {
		list, object := make([]any, 5000), map[string]any{}
		for i := range list {
			list[i] = json.Number(fmt.Sprint(i))
			object[fmt.Sprintf("key %d", i)] = fmt.Sprint("value ", i)
		}
		j.echo(encode(list), list)
		j.echo(encode(object), object)
	}},
	{"A3.1", "the run input reaches the step", func(j *judge) {
		t := j.run(step{typ: "kit_echo", fields: map[string]any{"echo": 1}, id: "e1", name: "Echo ü", attempt: 1}, denied)
		j.ended(t)
		j.want("output", must(`{"echo":1,"type":"kit_echo","id":"e1","name":"Echo ü","address":"2.then.0","path":"1#7.then.0","abi":1,"attempt":1,"iteration":7,
			"run":"run_kit","sentinel":"kit","workspace":"/work space/ü","key":"run_kit/1#7.then.0"}`), t.output, nil)
	}},
	{"A3.1", "a step without id, name and field has none", func(j *judge) {
		t := j.run(step{typ: "kit_echo", fields: map[string]any{}}, denied)
		j.ended(t)
		out, _ := t.output.(map[string]any)
		for _, key := range []string{"id", "name", "echo"} {
			if !empty(out[key]) {
				j.faultf("%s is %s, want null", key, encode(out[key]))
			}
		}
		for _, key := range []string{"retry", "state"} {
			if out[key] != nil {
				j.faultf("%s is there: %s", key, encode(out[key]))
			}
		}
	}},
	{"A3.2", "the attempt is counted", func(j *judge) {
		t := j.run(step{typ: "kit_echo", fields: map[string]any{"echo": nil}, attempt: 3}, denied)
		j.ended(t)
		if out, _ := t.output.(map[string]any); !sameValue(out["attempt"], 3) {
			j.faultf("attempt is %v, want 3", out["attempt"])
		}
	}},
	{"A3.3", "retry has the error before, and state its value", func(j *judge) {
		t := j.run(step{
			typ: "kit_echo", fields: map[string]any{"echo": true}, attempt: 2, state: must(`{"next":3,"seen":["ü",null]}`),
			retry: must(`{"attempts":1,"error":{"code":"unavailable","message":"later","retryAfterMs":500,"x_new":1},"category":"rate_limit"}`),
		}, denied)
		j.ended(t)
		out, _ := t.output.(map[string]any)
		j.want("retry", must(`{"attempts":1,"code":"unavailable","category":"rate_limit"}`), out["retry"], nil)
		j.want("state", must(`{"next":3,"seen":["ü",null]}`), out["state"], nil)
	}},
	{"A3.3", "a state of false is a state", func(j *judge) {
		t := j.run(step{typ: "kit_echo", fields: map[string]any{"echo": 1}, state: false}, denied)
		j.ended(t)
		out, _ := t.output.(map[string]any)
		if state, ok := out["state"]; !ok || state != false {
			j.faultf("state is %v, want false", state)
		}
	}},
	{"A8", "an output of nearly 1 MiB is accepted", func(j *judge) {
		text := strings.Repeat("x", 1<<20-1000)
		j.echo(encode(text), text)
	}},
}

// echo checks that kit_echo returns a value. The JSON of the value is used in the input
// as it is.
func (j *judge) echo(value []byte, want any) {
	t := j.run(step{typ: "kit_echo", fields: map[string]any{"echo": json.RawMessage(value)}}, denied)
	if t.err != nil {
		j.faultf("echo of %s: the step failed: %s", brief(string(value), 100), errorText(t.err))
		return
	}
	out, _ := t.output.(map[string]any)
	j.want("echo of "+brief(string(value), 100), want, out["echo"], nil)
}

// escaped writes a text as JSON in ASCII alone.
func escaped(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	b.WriteByte('"')
	return b.String()
}

// sameValue compares a decoded number with an integer.
func sameValue(v any, n int) bool {
	number, ok := v.(json.Number)
	return ok && jsondiff.SameNumber(number, json.Number(fmt.Sprint(n)))
}
