package cond

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var errClosed = errors.New("the evaluator is closed")

// An Evaluator evaluates conditions. It is safe for concurrent use.
type Evaluator struct {
	fast     fastLane
	children *children
	plans    *lru[string, *plan] // of sources up to fastSource
}

// New returns an Evaluator. It starts nothing: machines and children come with
// the first conditions that need them.
func New(opt Options) *Evaluator {
	opt = opt.withDefaults()
	return &Evaluator{
		fast:     fastLane{timeout: opt.FastTimeout, longest: max(opt.FastTimeout, opt.ChildTimeout)},
		children: newChildren(opt),
		plans:    newLRU[string, *plan](plans),
	}
}

// Close ends the children and what they evaluate, and returns when they are
// gone. What needs a child fails afterwards. Close may be called again.
func (e *Evaluator) Close() { e.children.close() }

// Eval evaluates a source. What is not an [*abi.Error] with a code of its own
// is a value: an exception, a syntax error, a timeout or a promise is never
// false. A nil vars has no variables. Eval holds on to nothing of vars.
func (e *Evaluator) Eval(ctx context.Context, src string, vars Vars) (Value, error) {
	if ctx.Err() != nil {
		return Value{}, asContext(ctx)
	}
	v, err := e.eval(ctx, src, vars)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

func (e *Evaluator) eval(ctx context.Context, src string, vars Vars) (Value, *abi.Error) {
	p := e.plan(src)
	if p.err != nil {
		return Value{}, p.fault()
	}
	given := make(map[string]json.RawMessage, len(p.names))
	var unset []string
	for _, name := range p.names {
		if vars != nil {
			if v, ok := vars(name); ok && len(v) > 0 {
				given[name] = v
				continue
			}
		}
		unset = append(unset, name)
	}
	if p.judgement == fast && p.fits(given) {
		c, err := p.program(unset)
		if err != nil {
			return Value{}, err
		}
		v, err := e.fast.eval(c, given)
		return v, explain(err, unset)
	}
	if err := bound(given); err != nil {
		return Value{}, err
	}
	parts := []string{"eval", src, strings.Join(unset, ",")}
	for _, name := range p.names {
		if v, ok := given[name]; ok {
			parts = append(parts, name, string(v))
		}
	}
	v, err := e.children.ask(ctx, p.why(src), parts...)
	return v, explain(err, unset)
}

// Check reports what is wrong with a source without evaluating it, nil if
// nothing is. It is safe on any text; what the fast lane does not take is parsed
// in a child.
func (e *Evaluator) Check(src string) error {
	p := e.plan(src)
	if p.err != nil {
		return p.fault()
	}
	if p.judgement == fast {
		return nil
	}
	if _, err := e.children.ask(context.Background(), p.why(src), "check", src); err != nil {
		return err
	}
	return nil
}

// plan returns what is known of a source. Long ones are not kept: looking at
// them is cheap beside what a child does with them.
func (e *Evaluator) plan(src string) *plan {
	if len(src) > fastSource {
		return newPlan(src)
	}
	if p, ok := e.plans.get(src); ok {
		return p
	}
	return e.plans.add(strings.Clone(src), newPlan(src))
}

// fault is the plan's error, a copy: the plan is shared, and errors are added to
// on their way up.
func (p *plan) fault() *abi.Error {
	e := *p.err
	return &e
}

// why says what of a source the fast lane does not take.
func (p *plan) why(src string) string {
	if p.judgement == fast {
		return "the size of its variables"
	}
	return p.reason + " at " + locate(src, p.at).String()
}

// bound holds the variables of the child lane to its limits.
func bound(vars map[string]json.RawMessage) *abi.Error {
	total := 0
	for name, v := range vars {
		if total += len(v); total > maxData {
			return errf(abi.Limit, "variables: more than %d bytes of JSON with %q", maxData, name)
		}
		if measure(v) > maxUnits {
			return errf(abi.Limit, "variable %q: nested deeper than %d", name, maxUnits)
		}
	}
	return nil
}

// explain names the variables without a value beside an exception, which they
// often caused.
func explain(err *abi.Error, unset []string) *abi.Error {
	if err != nil && err.Code == abi.Plugin && err.Hint == "" && len(unset) > 0 {
		err.Hint = "without a value: $" + strings.Join(unset, ", $")
	}
	return err
}
