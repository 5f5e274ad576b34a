package loop

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// defaultCap is the most passes of a loop whose fields do not bound it.
const defaultCap = 10_000

// A plan is what the fields ask for.
type plan struct {
	kind    string // one of kinds, or empty
	passes  int64  // of count and each; -1 if a check decides
	cap     int64  // 0 is none
	check   string // of while and until
	each    sdk.Value
	as      string
	indexAs string
}

// run gives {iterations, output, reason}: the number of passes, the output of
// the last one, and the field that ended the loop.
func run(c *sdk.Context) (sdk.Value, error) {
	p, err := planned(c)
	if err != nil {
		return sdk.Value{}, err
	}
	// A checkpoint after each pass keeps a replay as short as one pass.
	done, last := c.State.Get("passes").IntOr(0), c.State.Get("last")
	ended := c.State.Get("ended").BoolOr(false)
	for !ended {
		more, err := p.more(c, done)
		if err != nil {
			return sdk.Value{}, err
		}
		if !more {
			break
		}
		if p.cap > 0 && done >= p.cap {
			return sdk.Value{}, p.capped()
		}
		if last, err = p.pass(c, done); err != nil {
			return sdk.Value{}, err
		}
		done++
		if p.kind == "until" {
			if _, ended, err = c.Eval(p.check, sdk.Value{}); err != nil {
				return sdk.Value{}, err
			}
		}
		if err := c.Checkpoint(state(done, last, ended)); err != nil {
			return sdk.Value{}, err
		}
	}
	if !last.Exists() {
		last = sdk.Null()
	}
	return sdk.Object(
		sdk.F("iterations", sdk.Int(done)),
		sdk.F("output", last),
		sdk.F("reason", sdk.String(p.kind)),
	), nil
}

func state(done int64, last sdk.Value, ended bool) sdk.Value {
	v := sdk.Object(sdk.F("passes", sdk.Int(done)), sdk.F("last", last))
	if ended {
		v = v.With("ended", sdk.Bool(true))
	}
	return v
}

// more reports whether another pass is wanted, before it and after done ones.
func (p plan) more(c *sdk.Context, done int64) (bool, error) {
	if p.kind == "while" {
		_, yes, err := c.Eval(p.check, sdk.Object(sdk.F(p.indexAs, sdk.Int(done))))
		return yes, err
	}
	return p.passes < 0 || done < p.passes, nil
}

func (p plan) pass(c *sdk.Context, i int64) (sdk.Value, error) {
	vars := sdk.Object(sdk.F(p.indexAs, sdk.Int(i)))
	if p.kind == "each" {
		vars = vars.With(p.as, p.each.At(int(i)))
	}
	if c.Steps("steps") == 0 {
		return sdk.Null(), nil
	}
	return c.Block("steps", vars)
}

// capped is the error of a loop that was not done when it reached its cap.
// Calling that success would hide that the work is unfinished.
func (p plan) capped() error {
	what := "the loop has no other end"
	switch p.kind {
	case "while":
		what = "while is still true"
	case "until":
		what = "until is still false"
	case "count", "each":
		what = strconv.FormatInt(p.passes, 10) + " passes were wanted"
	}
	e := sdk.Fail(sdk.CodeLimit, "loop: maxIterations "+strconv.FormatInt(p.cap, 10)+" reached: "+what)
	e.Field = "maxIterations"
	return sdk.Permanent(e)
}

func planned(c *sdk.Context) (plan, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return plan{}, err
	}
	p := plan{passes: -1, as: c.Field("as").StringOr("item"), indexAs: c.Field("indexAs").StringOr("index")}
	for _, name := range kinds {
		if c.Field(name).Given() {
			p.kind = name
		}
	}
	var err error
	switch p.kind {
	case "count":
		p.passes, err = c.IntField("count", 0, 0)
	case "each":
		p.each = c.Field("each")
		p.passes = int64(p.each.Len())
		if p.each.Kind() != sdk.KindList {
			err = sdk.BadField("each", "want a list, got "+p.each.Kind().String())
		}
	case "while", "until":
		p.check, err = c.StringField(p.kind)
	}
	if err != nil {
		return plan{}, err
	}
	fallback := int64(0)
	if p.passes < 0 {
		fallback = defaultCap
	}
	p.cap, err = c.IntField("maxIterations", 1, fallback)
	return p, err
}
