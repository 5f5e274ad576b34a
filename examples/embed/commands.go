package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A town is the outside world of one runtime: its weather, by day.
//
// It is safe for concurrent use, as [runtime.Commands] must be: nothing changes
// it.
type town map[string]string

// Lookup tells the engine what a command does, which decides what happens after
// a crash: one that only reads is called again. What one in the store writes
// commits together with its answer, so it happens exactly once.
func (t town) Lookup(name string) (runtime.CommandInfo, bool) {
	switch name {
	case "weather/on":
		return runtime.CommandInfo{Name: name, Summary: "Say how the weather is on a day.", ReadOnly: true}, true
	case "diary/add":
		return runtime.CommandInfo{Name: name, Summary: "Add a line to the diary.", InStore: true}, true
	}
	return runtime.CommandInfo{}, false
}

// Tools is what a model would be offered; there is none here.
func (t town) Tools([]string) []runtime.CommandInfo { return nil }

// Call executes a command.
func (t town) Call(ctx context.Context, call runtime.CommandCall) (json.RawMessage, error) {
	var in struct{ Day, Text string }
	if err := json.Unmarshal(call.Params, &in); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Message: err.Error()}
	}
	switch call.Command {
	case "weather/on":
		sky, ok := t[in.Day]
		if !ok {
			return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("weather: no day %q", in.Day)}
		}
		return json.Marshal(map[string]any{"day": in.Day, "sky": sky})
	case "diary/add":
		return addLine(ctx, call.Documents, in.Text)
	}
	return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("no command %q", call.Command)}
}

var _ runtime.Commands = town(nil)

// addLine numbers lines in the order they were written. Transactions run one
// after another, so no two get the same number.
func addLine(ctx context.Context, tx *runtime.DocumentTx, text string) (json.RawMessage, error) {
	n := 1
	err := tx.Scan(ctx, "diary", "", false, func(sentinels.Document) bool { n++; return true })
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Put(ctx, "diary", fmt.Sprintf("%06d", n), data, 0); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"line": n})
}

// diary writes the lines of a runtime's diary.
func diary(ctx context.Context, rt *runtime.Runtime, w io.Writer) error {
	return rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
		return tx.Scan(ctx, "diary", "", false, func(d sentinels.Document) bool {
			fmt.Fprintf(w, "  %s\n", d.Data)
			return true
		})
	})
}
