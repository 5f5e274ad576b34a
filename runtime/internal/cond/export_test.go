package cond

import (
	"strings"

	"github.com/dop251/goja"
)

// SlowLane evaluates as a child does, in this process.
func SlowLane(src string, vars Vars) (Value, error) {
	names := mentions(src)
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

// Plans returns how many sources are kept.
func (e *Evaluator) Plans() int { return e.plans.len() }

// IdleMachines returns how many machines of the fast lane are kept.
func (e *Evaluator) IdleMachines() int {
	e.fast.mu.Lock()
	defer e.fast.mu.Unlock()
	return len(e.fast.idle)
}

// Decode gives a JSON text as the machine sees it: what JSON.stringify makes of it.
func Decode(text string) (string, error) {
	m := newMachine()
	v, err := decode(m.vm, text, maxUnits)
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

// RunFrozen runs a script, of any kind, on a machine of the fast lane.
func RunFrozen(src string) error {
	m := newMachine()
	m.freeze()
	code, err := goja.Compile("", src, true)
	if err != nil {
		return err
	}
	_, err = m.vm.RunProgram(code)
	return err
}
