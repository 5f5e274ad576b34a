package sdktest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestReadCasesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                 "read cases",
		`[] []`:                              "line 1: text after the value",
		"[\n\n{]":                            "line 3: ",
		`[{"nam":"x"}]`:                      `item 1: unknown key "nam"`,
		`[{"Name":"x"}]`:                     `item 1: unknown key "Name"`,
		`[{"name":"x","name":"y"}]`:          "duplicate key",
		`[{"name":"x","step":{"typ":"a"}}]`:  `unknown key "step.typ"`,
		`[{"name":"x","run":{"uuid":"a"}}]`:  `unknown key "run.uuid"`,
		`[{"name":"x","error":{"text":""}}]`: `unknown key "error.text"`,
		`[{"name":"x","attempt":"1"}]`:       "attempt",
		`[{"step":{"type":"a"}}]`:            "unique name",
		`[{"name":"x"}]`:                     "step.type",
		`[{"name":"x","step":{"type":"a"}}]`: "want one of output",
		`[{"name":"x","step":{"type":"a"},"output":1,"error":{"code":"denied"}}]`:                                 "want one of output",
		`[{"name":"x","step":{"type":"a"},"output":1},{"name":"x","step":{"type":"a"},"output":1}]`:               "unique name",
		`[{"name":"x","step":{"type":"a"},"output":1,"calls":[{"function":"fly","ok":1}]}]`:                       `unknown host function "sentinel_fly"`,
		`[{"name":"x","step":{"type":"a"},"output":1,"calls":[{"function":"http"}]}]`:                             "either ok or error",
		`[{"name":"x","step":{"type":"a"},"output":1,"calls":[{"function":"http","error":{"code":"Odd"}}]}]`:      `invalid error code "Odd"`,
		`[{"name":"x","step":{"type":"a"},"output":1,"calls":[{"function":"http","ok":1,"error":{"code":"x"}}]}]`: "either ok or error",
		`[{"name":"x","step":{"type":"a"},"output":1,"calls":[{"function":"http","okay":1}]}]`:                    `calls: unknown key "okay"`,
	} {
		if _, err := sdktest.ReadCases([]byte(text)); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	cases, err := sdktest.ReadCases([]byte(`[{"name":"x","step":{"type":"a"},"output":null}]`))
	if err != nil || string(cases[0].Output) != "null" {
		t.Errorf("null is an output: %v %+v", err, cases)
	}
}

// FuzzReadCases checks that any text is read as cases or refused, and that cases
// that were read can be written and read again.
func FuzzReadCases(f *testing.F) {
	f.Add([]byte(`[{"name":"x","step":{"type":"a","fields":{}},"calls":[{"function":"http","request":{"method":"POST","body":"hey"},"ok":{"status":200,"body":"yo"}}],"output":{"a":[1,2.5,null]}}]`))
	f.Add([]byte(`[{"name":"x","step":{"type":"a"},"error":{"code":"denied"},"logs":["a"]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cases, err := sdktest.ReadCases(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(cases)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sdktest.ReadCases(again); err != nil {
			t.Fatalf("%v: %s", err, again)
		}
	})
}
