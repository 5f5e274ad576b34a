package loop

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// defaultLimit limits the iterations of a loop without count, each and
// maxIterations.
const defaultLimit = 10_000

// A plan is the fields of the step.
type plan struct {
	kind       string // one of kinds, or empty
	iterations int64  // of count and each; -1 if a check decides
	limit      int64  // 0 is no limit
	check      string // of while and until
	each       sdk.Value
	as         string
	indexAs    string
}

// run returns {iterations, output, reason}: the number of iterations, the output of
// the last one, and the field that ended the loop.
func run(c *sdk.Context) (sdk.Value, error) {
	p, err := readPlan(c)
	if err != nil {
		return sdk.Value{}, err
	}
	// A checkpoint after each iteration limits a replay to one iteration.
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
		if p.limit > 0 && done >= p.limit {
			return sdk.Value{}, p.limitError()
		}
		if last, err = p.iterate(c, done); err != nil {
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

// state returns the state of a checkpoint.
func state(done int64, last sdk.Value, ended bool) sdk.Value {
	v := sdk.Object(sdk.F("passes", sdk.Int(done)), sdk.F("last", last))
	if ended {
		v = v.With("ended", sdk.Bool(true))
	}
	return v
}

// more reports, before each iteration, whether it must run after done ones.
func (p plan) more(c *sdk.Context, done int64) (bool, error) {
	if p.kind == "while" {
		_, yes, err := c.Eval(p.check, sdk.Object(sdk.F(p.indexAs, sdk.Int(done))))
		return yes, err
	}
	return p.iterations < 0 || done < p.iterations, nil
}

// iterate executes the steps of iteration i.
func (p plan) iterate(c *sdk.Context, i int64) (sdk.Value, error) {
	vars := sdk.Object(sdk.F(p.indexAs, sdk.Int(i)))
	if p.kind == "each" {
		vars = vars.With(p.as, p.each.At(int(i)))
	}
	if c.Steps("steps") == 0 {
		return sdk.Null(), nil
	}
	return c.Block("steps", vars)
}

// limitError is the error of a loop that reached its limit before its end. A
// success would hide that the work is unfinished.
func (p plan) limitError() error {
	what := "the loop has no other end"
	switch p.kind {
	case "while":
		what = "while is still true"
	case "until":
		what = "until is still false"
	case "count", "each":
		what = "want " + strconv.FormatInt(p.iterations, 10) + " iterations"
	}
	e := sdk.Fail(sdk.CodeLimit, "loop: maxIterations "+strconv.FormatInt(p.limit, 10)+" reached: "+what)
	e.Field = "maxIterations"
	return sdk.Permanent(e)
}

// readPlan reads and checks the fields of the step.
func readPlan(c *sdk.Context) (plan, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return plan{}, err
	}
	p := plan{iterations: -1, as: c.Field("as").StringOr("item"), indexAs: c.Field("indexAs").StringOr("index")}
	for _, name := range kinds {
		if c.Field(name).Given() {
			p.kind = name
		}
	}
	var err error
	switch p.kind {
	case "count":
		p.iterations, err = c.IntField("count", 0, 0)
	case "each":
		p.each = c.Field("each")
		p.iterations = int64(p.each.Len())
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
	if p.iterations < 0 {
		fallback = defaultLimit
	}
	p.limit, err = c.IntField("maxIterations", 1, fallback)
	return p, err
}
