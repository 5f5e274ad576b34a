package cond

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// machine is a JavaScript machine with what evaluations need of it, captured
// before any condition ran. It serves one evaluation at a time.
type machine struct {
	vm        *goja.Runtime
	stringify goja.Callable
	ready     map[*program]goja.Callable // of a pooled machine
}

// newMachine is the one set-up of both lanes: no clock, no chance, no way to
// make code of text, and a bounded call stack.
func newMachine() *machine {
	vm := goja.New()
	vm.SetMaxCallStackSize(callStack)
	vm.SetRandSource(func() float64 { return 0 })
	global := vm.GlobalObject()
	stringify, _ := goja.AssertFunction(vm.Get("JSON").(*goja.Object).Get("stringify"))
	must(vm.Get("Math").(*goja.Object).Delete("random"))
	// The constructors of the four kinds of function are reached through their
	// prototypes even where the name Function is gone.
	for _, kind := range functionKinds {
		v, err := vm.RunProgram(kind)
		must(err)
		must(v.(*goja.Object).Delete("constructor"))
	}
	for _, name := range []string{"Date", "eval", "Function"} {
		must(global.Delete(name))
	}
	return &machine{vm: vm, stringify: stringify}
}

var functionKinds = func() []*goja.Program {
	var programs []*goja.Program
	for _, src := range []string{
		"Object.getPrototypeOf(function(){})", "Object.getPrototypeOf(function*(){})",
		"Object.getPrototypeOf(async function(){})",
	} {
		programs = append(programs, goja.MustCompile("", src, true))
	}
	return programs
}()

// must panics: the machine is goja's own and these cannot fail.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("condition machine: %v", err))
	}
}

// freeze makes everything that a script can reach from the machine unchangeable,
// for machines that serve more than one evaluation.
func (m *machine) freeze() {
	_, err := m.vm.RunProgram(freezeAll)
	must(err)
}

var freezeAll = goja.MustCompile("", `(function() {
	const seen = new Set(), own = Reflect.ownKeys, describe = Object.getOwnPropertyDescriptor;
	const visit = function(o) {
		if (o === null || typeof o !== "object" && typeof o !== "function" || seen.has(o)) return;
		seen.add(o);
		for (const key of own(o)) {
			const d = describe(o, key);
			if (d === undefined) continue;
			visit(d.value); visit(d.get); visit(d.set);
		}
		visit(Object.getPrototypeOf(o));
		Object.freeze(o);
	};
	// What no global names: the prototypes of iterators and generators.
	visit(Object.getPrototypeOf([][Symbol.iterator]()));
	visit(Object.getPrototypeOf(""[Symbol.iterator]()));
	visit(Object.getPrototypeOf(new Map()[Symbol.iterator]()));
	visit(Object.getPrototypeOf(new Set()[Symbol.iterator]()));
	visit(Object.getPrototypeOf(function*(){}));
	visit(Object.getPrototypeOf(async function(){}));
	visit(globalThis);
})()`, true)

// run carries out a program with the variables of its parameters.
func (m *machine) run(p *program, value func(name string) json.RawMessage, depth int) (v Value, err *abi.Error) {
	defer func() {
		// goja panics with its own values where a callback of ours met an
		// exception, and with any on a fault.
		if r := recover(); r != nil {
			if e, ok := r.(error); ok {
				err = m.failure(e)
			} else {
				err = errf(abi.Internal, "evaluate: %v", r)
			}
		}
	}()
	f, err := m.function(p)
	if err != nil {
		return Value{}, err
	}
	var few [4]goja.Value
	args := few[:0]
	for _, name := range p.params {
		arg, derr := decode(m.vm, string(value(name)), depth)
		if derr != nil {
			return Value{}, errf(abi.Internal, "variable %q: %v", name, derr)
		}
		args = append(args, arg)
	}
	result, rerr := f(goja.Undefined(), args...)
	if rerr != nil {
		return Value{}, m.failure(rerr)
	}
	return m.result(result)
}

// function returns the program's function in this machine.
func (m *machine) function(p *program) (goja.Callable, *abi.Error) {
	if f, ok := m.ready[p]; ok {
		return f, nil
	}
	v, err := m.vm.RunProgram(p.code)
	if err != nil {
		return nil, m.failure(err)
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errf(abi.Internal, "compile: no function")
	}
	if m.ready != nil {
		if len(m.ready) >= plans {
			clear(m.ready)
		}
		m.ready[p] = f
	}
	return f, nil
}

var (
	jsonTrue  = json.RawMessage("true")
	jsonFalse = json.RawMessage("false")
)

func (m *machine) result(v goja.Value) (Value, *abi.Error) {
	if o, ok := v.(*goja.Object); ok {
		if o.ClassName() == "Promise" {
			return Value{}, withHint(errf(abi.Plugin, "the result is a promise"), "a condition has no promises")
		}
	}
	out := Value{Truthy: v.ToBoolean()}
	if v.StrictEquals(m.vm.ToValue(true)) {
		out.JSON = jsonTrue
		return out, nil
	}
	if v.StrictEquals(m.vm.ToValue(false)) {
		out.JSON = jsonFalse
		return out, nil
	}
	text, err := m.stringify(goja.Undefined(), v)
	if err != nil {
		return Value{}, m.failure(err)
	}
	if goja.IsUndefined(text) {
		return out, nil
	}
	s := text.String()
	if len(s) > maxResult {
		return Value{}, errf(abi.Limit, "result: %d bytes of JSON, more than %d", len(s), maxResult)
	}
	out.JSON = json.RawMessage(s)
	return out, nil
}

// failure turns what stopped a script into an error.
func (m *machine) failure(err error) *abi.Error {
	var thrown *goja.Exception
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	switch {
	case errors.As(err, &interrupted):
		return errf(abi.Timeout, "evaluate: no result in time")
	case errors.As(err, &overflow):
		return errf(abi.Limit, "evaluate: calls nested deeper than %d", callStack)
	case errors.As(err, &thrown):
		return m.exception(thrown)
	}
	return errf(abi.Internal, "evaluate: %v", err)
}

func (m *machine) exception(thrown *goja.Exception) *abi.Error {
	text := "a value that has no text"
	// Reading a thrown value may run a script's own getters.
	if m.vm.Try(func() {
		v := thrown.Value()
		if o, ok := v.(*goja.Object); ok && o.ClassName() == "Error" {
			text = o.Get("name").String() + ": " + o.Get("message").String()
			return
		}
		text = "threw " + v.String()
	}) != nil {
		text = "a value that has no text"
	}
	// goja prints its own structures here, addresses and all, which a replay
	// would not repeat.
	if strings.Contains(text, "Could not convert &") {
		text = "TypeError: Could not convert object to primitive value"
	}
	where := ""
	for _, frame := range thrown.Stack() {
		// The condition is on all lines but the first of what was compiled.
		if p := frame.Position(); p.Line > 1 {
			where = fmt.Sprintf(" at %s", position{p.Line - 1, p.Column})
			break
		}
	}
	e := abi.New(abi.Plugin, "condition"+where+": "+clip(text))
	e.Permanent = true
	return e
}

// asContext turns the end of a context into an error.
func asContext(ctx context.Context) *abi.Error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return errf(abi.Timeout, "evaluate: %v", context.Cause(ctx))
	}
	return errf(abi.Cancelled, "evaluate: %v", context.Cause(ctx))
}

// pooled lets the machine keep the functions of programs between evaluations.
func (m *machine) pooled() *machine {
	m.ready = map[*program]goja.Callable{}
	return m
}
