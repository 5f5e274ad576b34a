package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// GuestFields converts the fields of a step from the form of a definition to the form
// that a guest gets: aliases are renamed, and nested steps become their number (clause
// A2.3 of ABI.md). References are not resolved, because there is no run with variables.
// The manifest of the plugin has aliases and the marks of fields. A [Target] calls it.
func GuestFields(raw json.RawMessage, aliases map[string]string, mark func(field string) string) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, abi.New(abi.BadFields, "fields: want an object")
	}
	for alias, name := range aliases {
		if v, ok := given[alias]; ok {
			delete(given, alias)
			given[name] = v
		}
	}
	for name, v := range given {
		given[name] = counted(mark(name), v)
	}
	return given, nil
}

// counted replaces nested steps by their number.
func counted(mark string, v json.RawMessage) json.RawMessage {
	var named map[string][]map[string]json.RawMessage
	if mark == abi.MarkBranches && json.Unmarshal(v, &named) == nil && named != nil && !(len(named) == 1 && named["counts"] != nil) { // not the form of a guest already
		counts := make(map[string]int, len(named))
		for name, steps := range named {
			counts[name] = len(steps)
		}
		return countsOf(counts, v)
	}
	var list []json.RawMessage
	if mark != abi.MarkSteps && mark != abi.MarkBranches || !bytes.HasPrefix(bytes.TrimSpace(v), []byte("[")) || json.Unmarshal(v, &list) != nil {
		return v
	}
	if mark == abi.MarkSteps {
		return fmt.Appendf(nil, `{"count":%d}`, len(list))
	}
	counts := make([]int, len(list))
	for i, branch := range list {
		var steps []json.RawMessage
		if json.Unmarshal(branch, &steps) != nil {
			return v // the guest reports the problem
		}
		counts[i] = len(steps)
	}
	return countsOf(counts, v)
}

// countsOf returns the numbers of steps as a guest gets them, v if they have no JSON.
func countsOf(counts any, v json.RawMessage) json.RawMessage {
	text, err := json.Marshal(map[string]any{"counts": counts})
	if err != nil {
		return v
	}
	return text
}
