package cond

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// plan is a source of the fast lane, with its programs.
type plan struct {
	*shape
	tree *tree      // of a fast source
	err  *abi.Error // of any other, where it is wrong

	mu       sync.Mutex
	programs map[string]*program // by the names without a value, joined
}

// newPlan judges a source and, where the fast lane takes it, parses it. What
// the lane's own grammar accepted is safe for goja's parser in this process.
func newPlan(src string) *plan {
	s, err := look(src)
	if err != nil {
		return &plan{shape: &shape{judgement: wrong}, err: err}
	}
	p := &plan{shape: s, programs: map[string]*program{}}
	if s.judgement == fast {
		if p.tree, p.err = analyse(src); p.err != nil {
			p.judgement = wrong
			return p
		}
		// Compiling reports the rest, and the common program is ready.
		if _, p.err = p.program(nil); p.err != nil {
			p.judgement = wrong
		}
	}
	return p
}

func (p *plan) program(unset []string) (*program, *abi.Error) {
	key := strings.Join(unset, ",")
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.programs[key]; c != nil {
		return c, nil
	}
	c, err := p.tree.compile(unset)
	if err != nil {
		return nil, err
	}
	if len(p.programs) >= variants {
		clear(p.programs)
	}
	p.programs[key] = c
	return c, nil
}

// fits reports whether the fast lane takes these variables. A source that joins
// text with "+" pays for each mention, so that no join of 340 mentions makes
// megabytes.
func (p *plan) fits(vars map[string]json.RawMessage) bool {
	total := 0
	for name, v := range vars {
		n := len(v)
		if p.joins {
			n *= p.uses[name]
		}
		if total += n; total > fastData {
			return false
		}
	}
	for _, v := range vars {
		if measure(v) > fastUnits {
			return false
		}
	}
	return true
}

// fastLane evaluates in this process, on machines that are kept.
type fastLane struct {
	timeout time.Duration // of the first try
	longest time.Duration // of the second

	mu   sync.Mutex
	idle []*machine
}

// eval gives a source that ran out of time a second, longer try. The timer
// counts real time, and on a busy computer 50 ms pass while this process does
// not run at all: a few in a million conditions of 5 us failed so at a load of
// four to a processor. Trying again is safe, since an evaluation changes nothing, and
// bounded, since the lane's grammar has only linear work.
func (l *fastLane) eval(c *program, vars map[string]json.RawMessage) (Value, *abi.Error) {
	v, err := l.try(c, vars, l.timeout)
	if err != nil && err.Code == abi.Timeout {
		return l.try(c, vars, l.longest)
	}
	return v, err
}

func (l *fastLane) try(c *program, vars map[string]json.RawMessage, limit time.Duration) (Value, *abi.Error) {
	m := l.take()
	timer := time.AfterFunc(limit, func() { m.vm.Interrupt("timeout") })
	v, err := m.run(c, func(name string) json.RawMessage { return vars[name] }, fastUnits)
	// A machine that threw is as good as new, for nothing can be written. One
	// whose timer fired may be interrupted later still, and goes.
	if timer.Stop() && (err == nil || err.Code == abi.Plugin) {
		l.give(m)
	}
	return v, err
}

func (l *fastLane) take() *machine {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return m
	}
	l.mu.Unlock()
	m := newMachine()
	m.freeze()
	return m.pooled()
}

func (l *fastLane) give(m *machine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < idleVMs {
		l.idle = append(l.idle, m)
	}
}
