package sdktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// decode reads a JSON list and checks the keys of each item. [sdk.Parse] refuses what
// encoding/json accepts silently: duplicate keys and invalid UTF-8.
func decode(text []byte, into any, keys func(item sdk.Value) error) error {
	v, err := sdk.Parse(string(text))
	var syntax *sdk.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %s", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), syntax.Reason)
	case err != nil:
		return err
	}
	if v.Kind() != sdk.KindList {
		return errors.New("want a list")
	}
	for i, item := range v.Items() {
		if err := keys(item); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return json.Unmarshal(text, into)
}

// caseKeys checks the keys of a case. encoding/json would ignore their case.
func caseKeys(c sdk.Value) error {
	if err := known(c, "", "name", "step", "run", "attempt", "retry", "state", "calls", "output", "error", "problems", "logs"); err != nil {
		return err
	}
	if err := known(c.Get("step"), "step.", "type", "id", "name", "address", "path", "onError", "fields"); err != nil {
		return err
	}
	if err := known(c.Get("run"), "run.", "id", "sentinel", "iteration", "workspace", "key"); err != nil {
		return err
	}
	for _, fake := range c.Get("calls").Items() {
		if err := fakeKeys(fake); err != nil {
			return fmt.Errorf("calls: %w", err)
		}
	}
	return errorKeys(c.Get("error"))
}

func fakeKeys(fake sdk.Value) error {
	if err := known(fake, "", "function", "request", "ok", "error"); err != nil {
		return err
	}
	return errorKeys(fake.Get("error"))
}

func errorKeys(e sdk.Value) error {
	return known(e, "error.", "code", "message", "field", "retryAfterMs", "permanent", "hint", "fallback", "data", "end")
}

func known(v sdk.Value, path string, keys ...string) error {
	for key := range v.Fields() {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("unknown key %q", path+key)
		}
	}
	return nil
}
