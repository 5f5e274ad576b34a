package wasm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// TestHandlesAreNotCopied: a step that passes a large value on does not copy it into its guest,
// and the host gets it whole.
func TestHandlesAreNotCopied(t *testing.T) {
	code, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, open(t, wasm.Options{}), code, wasm.LoadOptions{Trusted: true})
	defer m.Release()
	item := `{"id":1,"text":"a \"quoted\" @s64 text\\","list":[1.50,null,{}]}`
	list := "[" + strings.Repeat(item+",", 20_000) + item + "]"
	text := `"` + strings.Repeat(`line\n@s64 \"x\" \\`, 60_000) + `"`
	for name, value := range map[string]string{
		"list": list, "text": text, "list of a text": "[" + text + "]", "object of a list": `{"a":{"b":` + list + `},"n":1}`,
		"object with many members": "{" + strings.Repeat(" ", 20_000) + members(60_000) + "}",
	} {
		var request []byte
		var outline *wasm.Outline
		res, err := m.Run(context.Background(), wasm.Invocation{
			Input:     input("set", `{"values":{"v":{"value":`+value+`},"n":{"value":1}}}`),
			ClockBase: start, Limits: wasm.Limits{MemoryBytes: 256 << 20, MessageBytes: 17 << 20, OutputBytes: 17 << 20},
			Call: func(ctx context.Context, _ string, r []byte) (wasm.Reply, error) {
				request, outline = r, wasm.OutlineOf(ctx)
				return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
			},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := `{"v":` + value + `,"n":1}`
		if string(request) != `{"set":`+want+`}` || string(res.Output) != want {
			t.Errorf("%s: a request of %d bytes and an output of %d, want the fields as they were", name, len(request), len(res.Output))
		}
		// A new instance writes its manifest, of half of that.
		if most := int64(64 << 10); res.CopiedBytes > most {
			t.Errorf("%s: the guest copied %d bytes for a value of %d, want at most %d", name, res.CopiedBytes, len(value), most)
		}
		if outline == nil || len(outline.Text) > 4<<10 || !json.Valid(outline.Text) {
			t.Fatalf("%s: the outline of the request is %.200q", name, outline)
		}
		if got := outline.Insert(outline.Text); string(got) != string(request) {
			t.Errorf("%s: the outline with its values is not the request: %.200s", name, got)
		}
	}
}

// members returns members of an object.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d": %d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// input returns the run input of a step.
func input(stepType, fields string) []byte {
	return []byte(`{"abi":1,"step":{"type":"` + stepType + `","address":"0","path":"0","fields":` + fields + `},"run":{"id":"r","iteration":1},"attempt":1}`)
}

// TestLargeValuesBesideInput: a guest has the same input if the large values in it were found before, whether it takes
// handles or not.
func TestLargeValuesBesideInput(t *testing.T) {
	code, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, wasm.Options{})
	text := `"` + strings.Repeat("x", 20_000) + `"`
	list := "[" + strings.Repeat(text+",", 3) + `{"a":` + text + `}]`
	invalid := "\"\xff" + strings.Repeat("x", 20_000) + `"`
	const none = 1 << 20 // copied by a guest without handles
	for name, c := range map[string]struct {
		code   []byte
		trust  bool
		input  string // with a $ in place of each value
		values []string
		copied int64 // most bytes that the guest copies
	}{
		"handles":           {code, true, string(input("set", `{"values":{"a":{"value":$},"b":{"value":$}}}`)), []string{text, list}, 64 << 10},
		"and a large state": {code, true, strings.Replace(string(input("set", `{"values":{"a":{"value":$}}}`)), `"attempt":1`, `"attempt":1,"state":`+list, 1), []string{text}, 64 << 10},
		"not UTF-8":         {code, true, string(input("set", `{"values":{"a":{"value":$}}}`)), []string{invalid}, none},
		"no handles":        {watGuest(t, "echo"), false, `{"a":$}`, []string{text}, none},
	} {
		m := load(t, h, c.code, wasm.LoadOptions{Trusted: c.trust})
		defer m.Release()
		whole, parted := "", wasm.Invocation{}
		for i, part := range strings.Split(c.input, "$") {
			if i > 0 {
				whole += c.values[i-1]
				parted.Large = append(parted.Large, wasm.LargeValue{At: len(parted.Input), Value: []byte(c.values[i-1])})
			}
			whole, parted.Input = whole+part, append(parted.Input, part...)
		}
		var results []string
		for _, inv := range []wasm.Invocation{{Input: []byte(whole)}, parted} {
			inv.ClockBase, inv.Limits = start, wasm.Limits{MemoryBytes: 64 << 20, MessageBytes: 1 << 20, OutputBytes: 1 << 20}
			inv.Call = func(context.Context, string, []byte) (wasm.Reply, error) {
				return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
			}
			res, err := m.Run(context.Background(), inv)
			results = append(results, fmt.Sprintf("%s %v", res.Output, err))
			if res.CopiedBytes > c.copied {
				t.Errorf("%s: the guest copied %d bytes", name, res.CopiedBytes)
			}
		}
		if results[0] != results[1] || name != "not UTF-8" && !strings.Contains(results[1], c.values[0]) {
			t.Errorf("%s: got %.300s, want %.300s", name, results[1], results[0])
		}
	}
	_, err = load(t, h, code, wasm.LoadOptions{Trusted: true}).Run(context.Background(), wasm.Invocation{
		Input: input("set", `{}`), Large: []wasm.LargeValue{{Value: make([]byte, 18<<20)}},
	})
	wantError(t, err, "limit", "an input of 18874")
}

// TestHandlesAreRead: a step that reads a large value has all of it.
func TestHandlesAreRead(t *testing.T) {
	code, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	m := load(t, open(t, wasm.Options{}), code, wasm.LoadOptions{Trusted: true})
	defer m.Release()
	list := "[" + strings.Repeat(`"some text of an item",`, 1_000) + `"last"]`
	var blocks []string
	_, err = m.Run(context.Background(), wasm.Invocation{
		Input: input("loop", `{"each":`+list+`,"steps":{"count":1}}`), ClockBase: start,
		Limits: wasm.Limits{MemoryBytes: 256 << 20, MessageBytes: 17 << 20, OutputBytes: 17 << 20},
		Call: func(_ context.Context, function string, r []byte) (wasm.Reply, error) {
			if function != "sentinel_block" {
				return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
			}
			blocks = append(blocks, string(r))
			return wasm.Reply{Body: []byte(`{"ok":{"blocks":[{"success":true,"output":` + list + `}]}}`)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 1_001 || !strings.Contains(blocks[0], `"some text of an item"`) || !strings.Contains(blocks[1_000], `"last"`) {
		t.Errorf("%d blocks, want one for each of 1001 items", len(blocks))
	}
}

// TestHandlesOfHostileGuest: a handle is the value that the host has given, whatever the guest wrote into its
// block. One that the host has not given is not JSON, and a text that looks like one is a text.
func TestHandlesOfHostileGuest(t *testing.T) {
	m := load(t, open(t, wasm.Options{}), watGuest(t, "handles"), wasm.LoadOptions{})
	defer m.Release()
	value := `"` + strings.Repeat("x", 20_000) + `"`
	var requests []string
	run := func(limits wasm.Limits) (wasm.Result, error) {
		requests = nil
		return m.Run(context.Background(), wasm.Invocation{Input: []byte(`{"v":` + value + `}`), ClockBase: start, Limits: limits, Compute: time.Minute,
			Call: func(_ context.Context, _ string, r []byte) (wasm.Reply, error) {
				requests = append(requests, string(r))
				return wasm.Reply{Body: []byte(`{"ok":{}}`)}, nil
			}})
	}
	res, err := run(wasm.Limits{})
	if err != nil || string(res.Output) != `[`+value+`,"@s64"]` {
		t.Errorf("output %.100s, %v", res.Output, err)
	}
	if want := []string{`{"set":{"v":` + value + `,"w":{"a":[` + value + `,1]}}}`, `{"set":{"v":@s7}}`}; len(requests) != 2 || requests[0] != want[0] || requests[1] != want[1] {
		t.Errorf("requests %.200q", requests)
	}
	// The limits are those of the whole texts.
	if _, err := run(wasm.Limits{MessageBytes: 30_000}); err != nil || len(requests) != 1 {
		t.Errorf("%d requests, %v: a request of two values is not refused at the limit of 30,000 bytes", len(requests), err)
	}
	_, err = run(wasm.Limits{OutputBytes: 10_000})
	wantError(t, err, "output", "at most 10000 are allowed")
}
