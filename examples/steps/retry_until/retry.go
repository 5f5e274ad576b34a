package main

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// A plan is what the fields ask for.
type plan struct {
	until     string
	most      int64
	delay     int64 // ms
	maxDelay  int64 // ms
	factor    float64
	failFast  bool
	attemptAs string
	resultAs  string
}

// run gives {attempts, output}: the output of the attempt that did it.
//
// It checkpoints after each attempt, so that a replay is never longer than one:
// a run may wait here for days and be resumed on another machine. What it goes
// on with are the number of attempts and the last one's result.
func run(c *sdk.Context) (sdk.Value, error) {
	p, err := planned(c)
	if err != nil {
		return sdk.Value{}, err
	}
	made, result := c.State.Get("attempts").IntOr(0), c.State.Get("result")
	if !result.Exists() {
		result = sdk.Null()
	}
	for made < p.most {
		if pause := p.pause(made); pause > 0 {
			if err := c.Sleep(pause); err != nil {
				return sdk.Value{}, err
			}
		}
		made++
		var done bool
		if result, done, err = p.attempt(c, made, result); err != nil {
			return sdk.Value{}, err
		}
		if done {
			return sdk.Object(sdk.F("attempts", sdk.Int(made)), sdk.F("output", result.Get("output"))), nil
		}
		if err := c.Checkpoint(sdk.Object(sdk.F("attempts", sdk.Int(made)), sdk.F("result", result))); err != nil {
			return sdk.Value{}, err
		}
	}
	return sdk.Value{}, p.exhausted(made, result)
}

// attempt runs the steps once and looks whether that was enough.
func (p plan) attempt(c *sdk.Context, n int64, before sdk.Value) (result sdk.Value, done bool, err error) {
	vars := sdk.Object(sdk.F(p.attemptAs, sdk.Int(n)), sdk.F(p.resultAs, before))
	blocks, err := c.Blocks([]sdk.Block{{Field: "steps", Vars: vars}}, false, 0)
	if err != nil {
		return sdk.Value{}, false, err
	}
	b := blocks[0]
	if b.Error != nil && (p.failFast || b.Error.Code == sdk.CodeCancelled) {
		return sdk.Value{}, false, b.Error // of a run that is stopped there is nothing to try again
	}
	output := b.Output
	if !output.Exists() {
		output = sdk.Null()
	}
	result = sdk.Object(sdk.F("success", sdk.Bool(b.Success)), sdk.F("output", output), sdk.F("error", sdk.ErrorValue(b.Error)))
	if p.until == "" {
		return result, b.Success, nil
	}
	_, done, err = c.Eval(p.until, sdk.Object(sdk.F(p.attemptAs, sdk.Int(n)), sdk.F(p.resultAs, result)))
	return result, done, err
}

// pause is how long to wait in milliseconds when that many attempts were made.
func (p plan) pause(made int64) int64 {
	if made == 0 {
		return 0
	}
	ms := float64(p.delay)
	for range made - 1 {
		if ms *= p.factor; ms >= float64(p.maxDelay) {
			break
		}
	}
	return min(int64(ms), p.maxDelay)
}

// exhausted is the error of a step that made all its attempts. Calling that
// success would hide that nothing came of it.
func (p plan) exhausted(made int64, result sdk.Value) error {
	e := sdk.Fail(sdk.CodeLimit, "retry_until: "+strconv.FormatInt(made, 10)+" attempts and until is still false")
	e.Field = "maxAttempts"
	if last := sdk.ErrorFrom(result.Get("error")); last != nil {
		e.Message = "retry_until: " + strconv.FormatInt(made, 10) + " attempts, the last one ended with: " + last.Message
		e.Hint = last.Hint
	}
	return sdk.Permanent(e)
}

func planned(c *sdk.Context) (p plan, err error) {
	p.attemptAs, p.resultAs = c.Field("attemptAs").StringOr("attempt"), c.Field("resultAs").StringOr("result")
	if p.until, err = c.StringField("until"); err != nil {
		return p, err
	}
	if p.most, err = c.IntField("maxAttempts", 1, 10); err != nil {
		return p, err
	}
	if p.delay, err = c.IntField("delayMs", 0, 1000); err != nil {
		return p, err
	}
	if p.maxDelay, err = c.IntField("maxDelayMs", 0, 60_000); err != nil {
		return p, err
	}
	p.factor = 2
	if f := c.Field("factor"); f.Given() {
		factor, ok := f.AsFloat()
		if !ok || factor < 1 {
			return p, sdk.BadField("factor", "want a number of at least 1")
		}
		p.factor = factor
	}
	p.failFast, err = c.BoolField("failFast", false)
	return p, err
}
