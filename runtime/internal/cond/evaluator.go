package cond

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var errClosed = errors.New("the evaluator is closed")

// An Evaluator evaluates conditions. It is safe for concurrent use.
type Evaluator struct {
	fast     fastPath
	children *children
	plans    *lru[string, *plan] // plans of sources up to fastSource bytes
}

// New returns an Evaluator. VMs and children are started by the first
// conditions that need them.
func New(opt Options) *Evaluator {
	opt = opt.withDefaults()
	return &Evaluator{
		fast:     fastPath{timeout: opt.FastTimeout, longest: max(opt.FastTimeout, opt.ChildTimeout)},
		children: newChildren(opt),
		plans:    newLRU[string, *plan](maxPlans),
	}
}

// Close stops the children and returns when they have ended. Evaluations that
// need a child fail afterwards. Close may be called again.
func (e *Evaluator) Close() { e.children.close() }

// CheckChild starts a child, makes one request and stops it. The error has the
// code unavailable if no child can be started.
func CheckChild(ctx context.Context, command subprocess.Command) error {
	l := newChildren(Options{Child: command}.withDefaults())
	defer l.close()
	if _, _, err := l.request(ctx, fairqueue.Owner{}, "a slow condition", "check", "true"); err != nil {
		return err
	}
	return nil
}

// Eval evaluates a source. The error is always an [*abi.Error]: an exception, a
// syntax error, a timeout or a promise never counts as false. A nil vars means
// no variables. Eval does not keep references to values of vars.
//
// by is the agent or model that the evaluation is for, "" for a person. Evaluations in children wait
// in a queue for each of them, and those of agents and models have half of the children together: an
// agent can have any number of runs, whose expressions each take as long as the limit permits.
func (e *Evaluator) Eval(ctx context.Context, by, src string, vars Vars) (Value, error) {
	if ctx.Err() != nil {
		return Value{}, contextError(ctx)
	}
	v, err := e.eval(ctx, by, src, vars)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

func (e *Evaluator) eval(ctx context.Context, by, src string, vars Vars) (Value, *abi.Error) {
	p := e.plan(src)
	if p.err != nil {
		return Value{}, p.errCopy()
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
	if p.class == fast && p.fits(given) {
		v, err := e.fast.eval(p.program, given)
		return v, addUnsetHint(err, unset)
	}
	if err := checkVars(given); err != nil {
		return Value{}, err
	}
	parts := []string{"eval", src, strings.Join(unset, ",")}
	for _, name := range p.names {
		if v, ok := given[name]; ok {
			parts = append(parts, name, string(v))
		}
	}
	v, _, err := e.children.request(ctx, fairqueue.Of(by), p.childReason(src), parts...)
	return v, addUnsetHint(err, unset)
}

// checkTimeout bounds [Evaluator.Check], including the wait for a child. The
// work of a child has its own, shorter limit.
const checkTimeout = 30 * time.Second

// checks is the owner of all checks. They execute nothing of a source, so they are short, and have a
// turn apart from the evaluations.
var checks = fairqueue.Owner{Name: "checks"}

// Check reports the first mistake in a source without evaluating it, nil if
// there is none. It is safe on any text: sources that the fast path does not
// accept are parsed in a child.
//
// took is the time for which the check kept a processor busy: in this process on the wall, in a child its
// processor time. It grows with the square of the length of some sources, and exponentially with the depth of others.
func (e *Evaluator) Check(ctx context.Context, src string) (took time.Duration, err error) {
	begin := time.Now()
	p := e.plan(src)
	took = time.Since(begin)
	if p.err != nil {
		return took, p.errCopy()
	}
	if p.class == fast || p.checked.Load() {
		return took, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, used, failed := e.children.request(ctx, checks, p.childReason(src), "check", src)
	if took += used; failed != nil {
		return took, failed
	}
	p.checked.Store(true)
	return took, nil
}

// plan returns the plan of a source. Those of long sources are not cached,
// because the work of the child costs much more.
func (e *Evaluator) plan(src string) *plan {
	if len(src) > fastSource {
		return newPlan(src)
	}
	if p, ok := e.plans.get(src); ok {
		return p
	}
	return e.plans.add(strings.Clone(src), newPlan(src))
}

// errCopy returns a copy of the plan's error: the plan is shared, and callers
// change errors.
func (p *plan) errCopy() *abi.Error {
	e := *p.err
	return &e
}

// childReason describes why a source needs a child process.
func (p *plan) childReason(src string) string {
	if p.class == fast {
		return "the size of its variables"
	}
	return p.reason + " at " + locate(src, p.at).String()
}

// checkVars checks the variables of a child evaluation against its limits.
func checkVars(vars map[string]json.RawMessage) *abi.Error {
	total := 0
	for name, v := range vars {
		if total += len(v); total > maxData {
			return errf(abi.Limit, "variables: more than %d bytes of JSON with %q", maxData, name)
		}
		if measure(v) > maxDataDepth {
			return errf(abi.Limit, "variable %q: nested deeper than %d", name, maxDataDepth)
		}
	}
	return nil
}

// addUnsetHint adds the names of variables without a value to an exception,
// because they are often its cause.
func addUnsetHint(err *abi.Error, unset []string) *abi.Error {
	if err != nil && err.Code == abi.Plugin && err.Hint == "" && len(unset) > 0 {
		err.Hint = "without a value: $" + strings.Join(unset, ", $")
	}
	return err
}
