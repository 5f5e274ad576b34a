package cond

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// plan is an analyzed source. For one of the fast path it has the program.
type plan struct {
	*analysis
	program *program    // set for the fast path
	err     *abi.Error  // set for an invalid source
	checked atomic.Bool // a child has accepted the source
}

// newPlan classifies a source and parses it if it is one of the fast path. A
// source that the fast path's grammar accepts is safe for goja's parser in this
// process.
func newPlan(src string) *plan {
	s, err := analyze(src)
	if err != nil {
		return &plan{analysis: &analysis{class: invalid}, err: err}
	}
	p := &plan{analysis: s}
	if s.class == fast {
		var parsed *source
		if parsed, p.err = parseSource(src); p.err == nil {
			p.program, p.err = parsed.compile()
		}
		if p.err != nil {
			p.class = invalid
		}
	}
	return p
}

// fits reports whether the fast path accepts these variables. In a source with
// a binary "+" each use of a variable counts, so that 340 uses of one value
// cannot be joined to megabytes.
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
		if measure(v) > fastDataDepth {
			return false
		}
	}
	return true
}

// fastPath evaluates in this process, on pooled VMs.
type fastPath struct {
	timeout time.Duration // of the first attempt
	longest time.Duration // of the second attempt

	mu   sync.Mutex
	idle []*jsVM
}

// eval evaluates a program and, after a timeout, once more with a longer
// timeout. The timer measures real time, and on a busy computer this process
// may not run for 50 ms: a few in a million conditions of 5 us timed out at a
// load of four per processor. A second attempt is safe, because an evaluation
// changes nothing, and bounded, because the grammar of the fast path has linear
// work only.
func (l *fastPath) eval(c *program, vars map[string]json.RawMessage) (Value, *abi.Error) {
	v, err := l.attempt(c, vars, l.timeout)
	if err != nil && err.Code == abi.Timeout {
		return l.attempt(c, vars, l.longest)
	}
	return v, err
}

func (l *fastPath) attempt(c *program, vars map[string]json.RawMessage, limit time.Duration) (Value, *abi.Error) {
	m := l.get()
	timer := time.AfterFunc(limit, func() { m.js.Interrupt("timeout") })
	v, err := m.run(c, func(name string) json.RawMessage { return vars[name] }, fastDataDepth)
	// After an exception the VM can be reused, because nothing can write to it.
	// After its timer has fired it may be interrupted later, so it is
	// discarded.
	if timer.Stop() && (err == nil || err.Code == abi.Plugin) {
		l.put(m)
	}
	return v, err
}

func (l *fastPath) get() *jsVM {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return m
	}
	l.mu.Unlock()
	m := newVM()
	m.freeze()
	return m.pooled()
}

func (l *fastPath) put(m *jsVM) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < maxIdleVMs {
		l.idle = append(l.idle, m)
	}
}
