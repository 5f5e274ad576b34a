package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// typedLimits bound JSON that a user gives on the command line or in a file. The
// parameters of a command have the same.
var typedLimits = strictjson.Limits{Bytes: 4 << 20, Depth: strictjson.DefaultDepth + 8, Keys: 100_000, StringBytes: 4 << 20}

// jsonFlag reads a flag that takes JSON. "@FILE" stands for the text of FILE.
func (a *app) jsonFlag(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	where, hint := flag, "a text needs quotes of its own: '\"text\"'"
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := readArgument(a.path(name), maxArgument)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		text, where, hint = string(b), flag+" "+name, ""
	}
	if err := strictjson.Check([]byte(text), typedLimits); err != nil {
		if json.Valid([]byte(text)) {
			hint = ""
		}
		return nil, &usageError{fmt.Sprintf("%s: %v", where, err), hint}
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

// given is what a start gets from its flags.
type given struct {
	inputs    map[string]json.RawMessage
	variables map[string]json.RawMessage
	event     *sentinels.Event
}

// values sorts what --inputs, --input and --var give: what the definition
// declares is an input, all else of --var a variable.
func (a *app) values(def *sentinels.Definition, f *runFlags) (given, error) {
	g := given{inputs: map[string]json.RawMessage{}, variables: map[string]json.RawMessage{}}
	if f.inputsFile != "" {
		b, err := readArgument(a.path(f.inputsFile), maxArgument)
		if err != nil {
			return g, fmt.Errorf("--inputs: %w", err)
		}
		if err := strictjson.Decode(b, &g.inputs, typedLimits); err != nil {
			return g, &usageError{fmt.Sprintf("--inputs %s: %v", f.inputsFile, err), "the file holds one JSON object, a value for each input"}
		}
	}
	for _, pair := range append(tagged("--input", f.inputs), tagged("--var", f.vars)...) {
		name, text, ok := strings.Cut(pair.text, "=")
		if !ok || name == "" {
			return g, &usageError{fmt.Sprintf("%s %q is not NAME=VALUE", pair.flag, pair.text), ""}
		}
		in, declared := def.Inputs[name]
		value, err := valueOf(text, in.Type)
		if err != nil {
			return g, &usageError{fmt.Sprintf("%s %s: %v", pair.flag, name, err), ""}
		}
		if declared || pair.flag == "--input" {
			g.inputs[name] = value
		} else {
			g.variables[name] = value
		}
	}
	raw, err := a.jsonFlag("--event", f.event)
	if err == nil && raw != nil {
		g.event, err = eventOf(raw, a.env.Now())
	}
	return g, err
}

type taggedText struct{ flag, text string }

// tagged remembers which flag a text came from.
func tagged(flag string, texts []string) []taggedText {
	var out []taggedText
	for _, t := range texts {
		out = append(out, taggedText{flag, t})
	}
	return out
}

// valueOf reads a value that was typed: a string where one is wanted, else JSON
// if it is JSON, and else a string again, which the engine may refuse. JSON with
// duplicate keys or the like is an error.
func valueOf(text, want string) (json.RawMessage, error) {
	if want == "string" || !json.Valid([]byte(text)) {
		return json.Marshal(text)
	}
	return json.RawMessage(strings.TrimSpace(text)), strictjson.Check([]byte(text), typedLimits)
}

// eventOf makes $event of what was typed: a whole CloudEvents record is taken
// as it is, all else is the data of a new one.
func eventOf(raw json.RawMessage, now time.Time) (*sentinels.Event, error) {
	var parts map[string]json.RawMessage
	_ = json.Unmarshal(raw, &parts) // data need not be an object
	e := &sentinels.Event{}
	if parts["type"] != nil && parts["source"] != nil {
		if err := strictjson.DecodeOpen(raw, e, typedLimits); err != nil {
			return nil, &usageError{fmt.Sprintf("--event: %v", err), "a CloudEvents record has id, type, source, time and data"}
		}
	} else {
		e.Name, e.Source, e.Data = "manual", "user", raw
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	if e.Time.IsZero() {
		e.Time = now.UTC()
	}
	return e, nil
}

// roomFlags are what a resume adds to a run's limits, as typed.
type roomFlags struct {
	iterations, timeout, usd, tokens, calls string
}

// room reads them; a leading "+" says what is meant anyway and may be missing.
func (f roomFlags) room() (runtime.LimitExtension, error) {
	var room runtime.LimitExtension
	whole := func(flag, text string) (int64, error) {
		if text == "" {
			return 0, nil
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 10, 64)
		if err != nil || n <= 0 {
			return 0, &usageError{fmt.Sprintf("%s %q is no whole number above 0", flag, text), "such as " + flag + " +10"}
		}
		return n, nil
	}
	n, err := whole("--max-iterations", f.iterations)
	if err != nil {
		return room, err
	}
	room.Iterations = int(n)
	if room.Tokens, err = whole("--budget-tokens", f.tokens); err != nil {
		return room, err
	}
	if room.Calls, err = whole("--budget-calls", f.calls); err != nil {
		return room, err
	}
	if f.timeout != "" {
		d, err := time.ParseDuration(strings.TrimPrefix(f.timeout, "+"))
		if err != nil || d < time.Millisecond {
			return room, &usageError{fmt.Sprintf("--timeout %q is no time above 0", f.timeout), "such as --timeout +10m"}
		}
		room.TimeoutMs = d.Milliseconds()
	}
	if f.usd != "" {
		x, err := strconv.ParseFloat(strings.TrimPrefix(f.usd, "+"), 64)
		if err != nil || !(x > 0 && x < 1e12) {
			return room, &usageError{fmt.Sprintf("--budget-usd %q is no amount above 0", f.usd), "such as --budget-usd +2.50"}
		}
		room.CostUSD = x
	}
	return room, nil
}
