package triggers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Common are the options that every kind has. The runtime implements them.
type Common struct {
	// Filter is a condition on $event; a firing for which it is false starts
	// nothing. Default: every firing passes.
	Filter string `json:"filter,omitempty" doc:"condition on $event; a firing for which it is false starts nothing" default:"every firing passes"`
	// DebounceMs is how long firings must stop before one run starts for
	// all of them. Default 0, no debounce.
	DebounceMs int64 `json:"debounceMs,omitempty" doc:"how long firings must stop before one run starts for all of them, 0 to 86400000 ms" default:"0, no debounce"`
	// MaxWaitMs limits how long continuing firings can delay a debounced run.
	// Default ten times DebounceMs.
	MaxWaitMs int64 `json:"maxWaitMs,omitempty" doc:"how long continuing firings can delay a debounced run, in ms" default:"10 times debounceMs"`
	// AllowConcurrent overrides the definition's overlap policy for this trigger:
	// true is parallel, false is skip. Default: the policy of the definition.
	AllowConcurrent *bool `json:"allowConcurrent,omitempty" doc:"overlap policy of this trigger: true is parallel, false is skip" default:"concurrency of the definition"`
	// MaxRuns is how many runs the trigger starts in all; then it has ended. Default: no limit.
	MaxRuns *int64 `json:"maxRuns,omitempty" doc:"the trigger ends after so many runs" default:"no limit"`
	// Until is when the trigger ends. Default: never.
	Until string `json:"until,omitempty" doc:"when the trigger ends, a date-time in RFC 3339" default:"never"`
}

// Ended returns why the trigger has ended, after it has started so many runs, "" if it has not.
func (c Common) Ended(started uint64, now time.Time) string {
	if c.MaxRuns != nil && started >= uint64(*c.MaxRuns) {
		return fmt.Sprintf("ended: it has started %d of %d runs (maxRuns)", started, *c.MaxRuns)
	}
	if at, err := time.Parse(time.RFC3339, c.Until); err == nil && !now.Before(at) {
		return "ended at " + c.Until + " (until)"
	}
	return ""
}

// maxDebounce limits debounceMs and maxWaitMs.
const maxDebounce = 24 * time.Hour

// Debounce returns how long firings must stop, and the longest that a run may be
// delayed. Both are 0 without debounce.
func (c Common) Debounce() (quiet, longest time.Duration) {
	quiet, longest = time.Duration(c.DebounceMs)*time.Millisecond, time.Duration(c.MaxWaitMs)*time.Millisecond
	if longest == 0 {
		longest = 10 * quiet
	}
	return quiet, longest
}

// ReadCommon reads the common options of a trigger.
func ReadCommon(t sentinels.Trigger) (Common, error) {
	var c Common
	if len(t.Options) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(t.Options, &c); err != nil {
		return c, optionError(t.Type, err)
	}
	for name, ms := range map[string]int64{"debounceMs": c.DebounceMs, "maxWaitMs": c.MaxWaitMs} {
		if ms < 0 || time.Duration(ms)*time.Millisecond > maxDebounce {
			return c, fmt.Errorf("trigger %q: invalid %s %d: want 0 to %d", t.Type, name, ms, maxDebounce.Milliseconds())
		}
	}
	if c.MaxRuns != nil && *c.MaxRuns < 1 {
		return c, &sentinels.OptionError{Trigger: t.Type, Option: "maxRuns", Problem: fmt.Sprintf("is %d, want at least 1", *c.MaxRuns)}
	}
	if _, err := time.Parse(time.RFC3339, c.Until); c.Until != "" && err != nil {
		return c, &sentinels.OptionError{Trigger: t.Type, Option: "until", Problem: fmt.Sprintf(`is %q, want a date-time with its zone such as "2026-01-31T08:00:00Z"`, c.Until)}
	}
	if c.MaxWaitMs != 0 && c.MaxWaitMs < c.DebounceMs {
		return c, fmt.Errorf("trigger %q: maxWaitMs %d is less than debounceMs %d", t.Type, c.MaxWaitMs, c.DebounceMs)
	}
	return c, nil
}

// ReadOptions decodes the options of t into the struct that into points at, by its json
// tags. A key that neither the struct nor [Common] has is an error, and so is a value of
// another type; the result joins all of them, each a [*sentinels.OptionError] if it is
// about one key.
func ReadOptions(t sentinels.Trigger, into any) error {
	if len(t.Options) == 0 {
		return nil
	}
	var problems []error
	known := slices.Concat(keysOf(reflect.ValueOf(into).Elem().Interface()), keysOf(Common{}))
	var members map[string]json.RawMessage
	if err := json.Unmarshal(t.Options, &members); err != nil {
		return optionError(t.Type, err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			problems = append(problems, &sentinels.OptionError{Trigger: t.Type, Option: name, Known: known})
		}
	}
	if err := json.Unmarshal(t.Options, into); err != nil {
		problems = append(problems, optionError(t.Type, err))
	}
	return errors.Join(problems...)
}

// OptionsOf describes the options in a struct by the tags of its fields: json has the
// name, doc the meaning, default the default, enum the values, separated by commas, and
// required is "true" for an option that every trigger needs. v may be nil.
func OptionsOf(v any) []sentinels.TriggerOption {
	if v == nil {
		return nil
	}
	var list []sentinels.TriggerOption
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		o := sentinels.TriggerOption{Name: name, Doc: f.Tag.Get("doc"), Default: f.Tag.Get("default"), Required: f.Tag.Get("required") == "true"}
		if enum := f.Tag.Get("enum"); enum != "" {
			o.Enum = strings.Split(enum, ",")
		}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Bool:
			o.Type = "boolean"
		case reflect.Slice:
			o.Type = "array"
		case reflect.Int64:
			o.Type = "integer"
		default:
			o.Type = "string"
		}
		list = append(list, o)
	}
	return list
}

// keysOf returns the JSON keys of a struct.
func keysOf(v any) []string {
	var keys []string
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

// jsonType returns the name of a JSON type with its article, as encoding/json calls it.
func jsonType(value string) string {
	switch kind, _, _ := strings.Cut(value, " "); kind {
	case "bool":
		return "a boolean"
	case "array", "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

// wantedType returns the JSON type of an option.
func wantedType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "an array of strings"
	case reflect.Int64:
		return "a whole number"
	}
	return "a string"
}

func optionError(kind string, err error) error {
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return &sentinels.OptionError{Trigger: kind, Option: wrong.Field, Problem: fmt.Sprintf("is %s, want %s", jsonType(wrong.Value), wantedType(wrong.Type))}
	}
	return fmt.Errorf("trigger %q: options: %w", kind, err)
}
