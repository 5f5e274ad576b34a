package run

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// given is what a start gets from its flags.
type given struct {
	inputs    map[string]json.RawMessage
	variables map[string]json.RawMessage
	event     json.RawMessage
}

// values sorts what --inputs, --input and --var give: what the definition
// declares is an input, all else of --var a variable.
func (a verbs) values(def *sentinels.Definition, f *runFlags) (given, error) {
	g := given{inputs: map[string]json.RawMessage{}, variables: map[string]json.RawMessage{}}
	if f.inputsFile != "" {
		b, err := app.ReadFile(a.Path(f.inputsFile), app.MaxFile)
		if err != nil {
			return g, fmt.Errorf("--inputs: %w", err)
		}
		if err := strictjson.Decode(b, &g.inputs, app.JSONLimits); err != nil {
			return g, app.NewUsageError(fmt.Sprintf("--inputs %s: %v", f.inputsFile, err), "the file holds one JSON object, a value for each input")
		}
	}
	for _, pair := range append(tagged("--input", f.inputs), tagged("--var", f.vars)...) {
		name, text, ok := strings.Cut(pair.text, "=")
		if !ok || name == "" {
			return g, app.NewUsageError(fmt.Sprintf("%s %q is not NAME=VALUE", pair.flag, pair.text), "")
		}
		in, declared := def.Inputs[name]
		text, err := a.FileArgument(text)
		if err != nil {
			return g, fmt.Errorf("%s %s: %w", pair.flag, name, err)
		}
		value, err := app.ValueOf(text, in.Type)
		if err != nil {
			return g, app.NewUsageError(fmt.Sprintf("%s %s: %v", pair.flag, name, err), "")
		}
		if declared || pair.flag == "--input" {
			g.inputs[name] = value
		} else {
			g.variables[name] = value
		}
	}
	var err error
	g.event, err = a.JSONFlag("--event", f.event)
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

// extensionFlags are what a resume adds to a run's limits, as typed.
type extensionFlags struct {
	iterations, timeout, usd, tokens, calls string
}

// extension parses them; the leading "+" is optional.
func (f extensionFlags) extension() (runtime.LimitExtension, error) {
	var more runtime.LimitExtension
	whole := func(flag, text string) (int64, error) {
		if text == "" {
			return 0, nil
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 10, 64)
		if err != nil || n <= 0 {
			return 0, app.NewUsageError(fmt.Sprintf("invalid %s %q: want a whole number above 0", flag, text), "such as "+flag+" +10")
		}
		return n, nil
	}
	n, err := whole("--max-iterations", f.iterations)
	if err != nil {
		return more, err
	}
	more.Iterations = int(n)
	if more.Tokens, err = whole("--budget-tokens", f.tokens); err != nil {
		return more, err
	}
	if more.Calls, err = whole("--budget-calls", f.calls); err != nil {
		return more, err
	}
	if f.timeout != "" {
		d, err := time.ParseDuration(strings.TrimPrefix(f.timeout, "+"))
		if err != nil || d < time.Millisecond {
			return more, app.NewUsageError(fmt.Sprintf("invalid --timeout %q: want a duration above 0", f.timeout), "such as --timeout +10m")
		}
		more.TimeoutMs = d.Milliseconds()
	}
	if f.usd != "" {
		x, err := strconv.ParseFloat(strings.TrimPrefix(f.usd, "+"), 64)
		if err != nil || !(x > 0 && x < 1e12) {
			return more, app.NewUsageError(fmt.Sprintf("invalid --budget-usd %q: want an amount above 0", f.usd), "such as --budget-usd +2.50")
		}
		more.CostUSD = x
	}
	return more, nil
}
