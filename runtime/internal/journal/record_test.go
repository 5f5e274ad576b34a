package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// records returns one record of each kind.
func records() []*journal.Record {
	v := journal.Value{JSON: json.RawMessage(`{"a":1}`)}
	return []*journal.Record{
		{Kind: journal.RunStart, Time: 1, RunStart: &journal.RunStartBody{Sentinel: "s", Definition: v, Hash: "h", Root: "r", Seed: 1 << 63, Variables: map[string]json.RawMessage{"x": json.RawMessage("null")}}},
		{Kind: journal.IterationStart, IterationStart: &journal.IterationStartBody{Iteration: 1, Hash: "h", Event: &sentinels.Event{Name: "e"}}},
		{Kind: journal.StepStart, Path: "0#1.steps.2", Attempts: []int{1, 2}, StepStart: &journal.StepStartBody{Type: "t", Fields: v, Env: map[string]string{"E": "1"}}},
		{Kind: journal.CallStart, Path: "0", Attempts: []int{1}, CallStart: &journal.CallStartBody{Seq: 1, Function: "f", Request: journal.Value{Blob: &journal.Blob{Digest: "d", Size: 70_000}}, Reserved: &sentinels.Usage{Calls: 1}}},
		{Kind: journal.CallEnd, Path: "0", Attempts: []int{1}, CallEnd: &journal.CallEndBody{Seq: 1, Error: &abi.Error{Code: abi.Timeout, Message: "m"}, Joined: []int{0, 2}}},
		{Kind: journal.Checkpoint, Path: "0", Attempts: []int{1}, Checkpoint: &journal.CheckpointBody{Seq: 2, State: v, Block: 3}},
		{Kind: journal.StepEnd, Path: "0", Attempts: []int{0}, StepEnd: &journal.StepEndBody{Output: v, OutputTo: "x"}},
		{Kind: journal.Retry, Path: "0", Attempts: []int{1}, Retry: &journal.RetryBody{Error: &abi.Error{Code: abi.Trap}, Due: 5}},
		{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "decision", Call: "0!1", Verdict: "approve"}},
		{Kind: journal.Status, Elapsed: 7, Status: &journal.StatusBody{Status: sentinels.StatusPaused, Limit: "timeoutMs"}},
		{Kind: journal.IterationEnd, IterationEnd: &journal.IterationEndBody{Iteration: 1, Variables: map[string]journal.Value{"x": v}, Extension: &run.LimitExtension{Iterations: 1}}},
		{Kind: journal.RunEnd, RunEnd: &journal.RunEndBody{Status: sentinels.StatusCompleted}},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range records() {
		b, err := journal.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := journal.Decode(b)
		if err != nil {
			t.Fatalf("%s: %v", want.Kind, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Kind, diff)
		}
	}
}

// Decode refuses a record whose kind, format or body does not match: a run
// whose journal has a gap must not be recovered.
func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "decode journal record",
		`{"v":1,"k":"run.end"}`:            `kind "run.end" without its body`,
		`{"v":1,"k":"run.end","se":{}}`:    `kind "run.end" without its body`,
		`{"v":3,"k":"run.end","rn":{}}`:    "format 3, this program reads up to 2",
		`{"k":"run.end","rn":{}}`:          "format 0",
		`{"v":1,"k":"run.stop","rn":{}}`:   `kind "run.stop"`,
		`{"v":1,"k":"run.end","rn":{}} {}`: "decode journal record",
	} {
		if _, err := journal.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// TestFormat: a record has the lowest format that describes it, so that the program before reads the
// records that it would write.
func TestFormat(t *testing.T) {
	for want, end := range map[int]*journal.CallEndBody{
		1: {Seq: 1, Sets: map[string]json.RawMessage{"a": json.RawMessage(`1`)}},
		2: {Seq: 1, SetLarge: map[string]journal.Value{"a": {Blob: &journal.Blob{Digest: "d", Size: 9}}}},
	} {
		b, err := journal.Encode(&journal.Record{Kind: journal.CallEnd, CallEnd: end})
		if err != nil || !strings.HasPrefix(string(b), fmt.Sprintf(`{"v":%d,`, want)) {
			t.Errorf("format %d: %s, %v", want, b, err)
		}
		got, err := journal.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(end, got.CallEnd); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// FuzzDecode checks that a decoded record survives another encoding unchanged.
func FuzzDecode(f *testing.F) {
	for _, r := range records() {
		b, err := journal.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := journal.Decode(b)
		if err != nil {
			return
		}
		once, err := journal.Encode(r)
		if err != nil {
			t.Fatalf("encode the decoded record: %v", err)
		}
		again, err := journal.Decode(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice, err := journal.Encode(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("once %s\ntwice %s (%v)", once, twice, err)
		}
	})
}

// TestValuesKeepTheirBytes: a compact value is read back as it was written, and
// Compact changes nothing inside strings.
func TestValuesKeepTheirBytes(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": [1, 2],` + "\n\t" + `"b c": "x \" y"}`: `{"a":[1,2],"b c":"x \" y"}`,
		`"<a & b>\\"`: `"<a & b>\\"`,
		`{"a":"\\" }`: `{"a":"\\"}`,
		"\"\u2028\"":  "\"\u2028\"",
		`1`:           `1`,
		`{"open": `:   `{"open": `,
	} {
		got := journal.Compact(json.RawMessage(in))
		if string(got) != want {
			t.Errorf("%s: compact is %s, want %s", in, got, want)
		}
		if !json.Valid(got) {
			continue
		}
		b, err := journal.Encode(&journal.Record{Kind: journal.StepEnd, StepEnd: &journal.StepEndBody{Output: journal.Value{JSON: got}}})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := journal.Decode(b)
		if err != nil || string(rec.StepEnd.Output.JSON) != want {
			t.Errorf("%s: read back as %s, %v", in, rec.StepEnd.Output.JSON, err)
		}
	}
}
