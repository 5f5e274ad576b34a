package cond

import (
	"strings"

	"github.com/dop251/goja"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
)

// EvalAsChild evaluates in this process as a child does.
func EvalAsChild(src string, vars Vars) (Value, error) {
	names := scanNames(src)
	var unset, pairs []string
	for _, name := range names {
		if v, ok := vars(name); ok && len(v) > 0 {
			pairs = append(pairs, name, string(v))
		} else {
			unset = append(unset, name)
		}
	}
	v, err := (&server{programs: newLRU[string, *program](1)}).eval(src, strings.Join(unset, ","), pairs)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// Pids returns the processes of the idle children.
func (e *Evaluator) Pids() []int {
	e.children.mu.Lock()
	defer e.children.mu.Unlock()
	var pids []int
	for _, c := range e.children.idle {
		pids = append(pids, c.Pid())
	}
	return pids
}

// Plans returns the number of cached sources.
func (e *Evaluator) Plans() int { return e.plans.len() }

// IdleVMs returns the number of pooled VMs.
func (e *Evaluator) IdleVMs() int {
	e.fast.mu.Lock()
	defer e.fast.mu.Unlock()
	return len(e.fast.idle)
}

// Decode decodes a JSON text to a value and returns what JSON.stringify makes
// of it.
func Decode(text string) (string, error) {
	m := newVM()
	v, _, err := decode(m.js, text, maxDataDepth)
	if err != nil {
		return "", err
	}
	out, e := m.result(v)
	if e != nil {
		return "", e
	}
	return string(out.JSON), nil
}

var (
	AppendFrame = appendFrame
	ReadFrame   = readFrame
	MaxFrame    = maxFrame
)

// RunFrozen runs any script on a VM of the fast path.
func RunFrozen(src string) error {
	m := newVM()
	m.freeze()
	code, err := goja.Compile("", src, true)
	if err != nil {
		return err
	}
	_, err = m.js.RunProgram(code)
	return err
}

// Names returns the variables that a source uses, without "$", each once. For a
// source of the fast path the list is exact. Otherwise it may also have a name
// that occurs in a string or comment only, but it has every name that is used.
func Names(src string) ([]string, error) {
	s, err := analyze(src)
	if err != nil {
		return nil, err
	}
	return s.names, nil
}

// Fast reports whether the fast path accepts a source, given variables of at
// most 64 KB.
func Fast(src string) bool {
	s, err := analyze(src)
	return err == nil && s.class == fast
}

func (c *lru[K, V]) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

// Waiting returns how many evaluations for an agent, a model or, with "", persons wait for a child.
func (e *Evaluator) Waiting(by string) int { return e.children.slots.Waiting(fairqueue.Of(by)) }
