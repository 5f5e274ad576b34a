package cond

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/dop251/goja"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// jsVM is a JavaScript VM. What an evaluation needs of it is captured before
// the first condition runs. It serves one evaluation at a time.
type jsVM struct {
	js        *goja.Runtime
	stringify goja.Callable
	ready     map[*program]goja.Callable // set for a pooled VM
	big       string                     // a whole number of the variables that is a BigInt, "" if there is none
}

// newVM returns a VM without a clock, randomness or a way to turn text into
// code, and with a bounded call stack. Both paths use it.
func newVM() *jsVM {
	vm := goja.New()
	vm.SetMaxCallStackSize(callStack)
	vm.SetRandSource(func() float64 { return 0 })
	global := vm.GlobalObject()
	stringify, _ := goja.AssertFunction(vm.Get("JSON").(*goja.Object).Get("stringify"))
	must(vm.Get("Math").(*goja.Object).Delete("random"))
	// Remove the constructors of all kinds of functions: their prototypes have
	// them even after the global name Function is removed.
	for _, kind := range functionKinds() {
		v, err := vm.RunProgram(kind)
		must(err)
		must(v.(*goja.Object).Delete("constructor"))
	}
	for _, name := range []string{"Date", "eval", "Function"} {
		must(global.Delete(name))
	}
	m := &jsVM{js: vm, stringify: stringify}
	setUp, err := vm.RunProgram(tame())
	must(err)
	call, _ := goja.AssertFunction(setUp)
	_, err = call(goja.Undefined(), vm.ToValue(m.parseExact))
	must(err)
	return m
}

// parseExact is JSON.parse of a text with a number that a float may round: it becomes a BigInt, as in a variable. It is
// undefined for other texts, and for those that are not JSON, whose error is that of JavaScript's own function.
func (m *jsVM) parseExact(call goja.FunctionCall) goja.Value {
	text := call.Argument(0).String()
	if !longNumber.MatchString(text) {
		return goja.Undefined()
	}
	v, big, err := decode(m.js, text, maxDataDepth)
	if err != nil || big == "" {
		return goja.Undefined()
	}
	m.big = cmp.Or(big, m.big)
	return v
}

// longNumber matches in a text with a whole number of 2^53 or more.
var longNumber = lazyregexp.New(`[0-9]{16}`)

// tameName is the name of a source of ours: a position in it means nothing to an author.
const tameName = "tame"

var tame = sync.OnceValue(func() *goja.Program { return goja.MustCompile(tameName, tameSource, true) })

// tameSource makes every key of an object data: Object.prototype has no names, so that a
// field that an object lacks is undefined, also one that is called "constructor", and one that
// is called "__proto__" can be set. What the names did for a conversion to a primitive value, a
// symbol does. A BigInt in a result becomes a marked text, see [jsVM.result]; JSON.stringify of the
// author writes its digits, and JSON.parse reads them. A Map, a Set and an iterator in a result are
// errors: JSON.stringify makes {} of them.
const tameSource = `(function(parseExact) {
	const root = Object.prototype, define = Object.defineProperty;
	for (const name of Object.getOwnPropertyNames(root)) delete root[name];
	for (const name of Object.getOwnPropertyNames(globalThis)) {
		const kind = globalThis[name];
		if (typeof kind === "function" && kind.prototype) delete kind.prototype.constructor;
	}
	define(root, Symbol.toPrimitive, {value: function(hint) {
		for (const name of hint === "string" ? ["toString", "valueOf"] : ["valueOf", "toString"]) {
			const convert = this[name];
			if (typeof convert !== "function") continue;
			const v = convert.call(this);
			if (v === null || typeof v !== "object" && typeof v !== "function") return v;
		}
		return hint === "number" ? NaN : "[object Object]";
	}});
	define(BigInt.prototype, "toJSON", {value: function() { return "\u0001bigint:" + this; }});
	const stringify = JSON.stringify, parse = JSON.parse;
	JSON.stringify = {stringify(value, replacer, space) {
		const text = stringify(value, typeof replacer !== "function" ? replacer : function(key, v) {
			v = replacer.call(this, key, typeof this[key] === "bigint" ? this[key] : v);
			return typeof v === "bigint" ? v.toJSON() : v;
		}, space);
		return text !== undefined && text.includes('"\\u0001bigint:') ? text.replace(/"\\u0001bigint:(-?[0-9]+)"/g, "$1") : text;
	}}.stringify;
	const walk = function(reviver, holder, key) {
		const v = holder[key];
		if (v !== null && typeof v === "object") {
			for (const k of Object.keys(v)) {
				const inner = walk(reviver, v, k);
				if (inner === undefined) delete v[k];
				else v[k] = inner;
			}
		}
		return reviver.call(holder, key, v);
	};
	JSON.parse = {parse(text, reviver) {
		text = String(text);
		const exact = parseExact(text);
		if (exact === undefined) return parse(text, reviver);
		return typeof reviver === "function" ? walk(reviver, {"": exact}, "") : exact;
	}}.parse;
	const iterators = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
	for (const [kind, what, use] of [[Map.prototype, "a Map", "Object.fromEntries"], [Set.prototype, "a Set", "Array.from"], [iterators, "an iterator", "Array.from"]]) {
		define(kind, "toJSON", {value: function() { throw new TypeError("the value has " + what + ", which JSON does not have: use " + use); }});
	}
})`

// bigMark begins a BigInt in the JSON of a result.
const bigMark = `"\u0001bigint:`

// bigInts matches the BigInts in the JSON of a result.
var bigInts = lazyregexp.New(`"\\u0001bigint:(-?[0-9]+)"`)

// functionKinds are compiled at first use, like freezeAll: most invocations of the program
// evaluate no condition.
var functionKinds = sync.OnceValue(func() []*goja.Program {
	var programs []*goja.Program
	for _, src := range []string{
		"Object.getPrototypeOf(function(){})", "Object.getPrototypeOf(function*(){})",
		"Object.getPrototypeOf(async function(){})",
	} {
		programs = append(programs, goja.MustCompile("", src, true))
	}
	return programs
})

// must panics on an error. These calls on goja's own objects cannot fail.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("condition VM: %v", err))
	}
}

// freeze freezes every object that a script can reach, for VMs that serve more
// than one evaluation.
func (m *jsVM) freeze() {
	_, err := m.js.RunProgram(freezeAll())
	must(err)
}

var freezeAll = sync.OnceValue(func() *goja.Program {
	return goja.MustCompile("", freezeSource, true)
})

const freezeSource = `(function() {
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
})()`

// run runs a program with the variables of its parameters.
func (m *jsVM) run(p *program, value func(name string) json.RawMessage, depth int) (v Value, err *abi.Error) {
	defer func() {
		// goja panics with its own errors if a callback of ours meets an
		// exception, and with any value if it has a bug.
		if r := recover(); r != nil {
			if e, ok := r.(error); ok {
				err = m.failure(e)
			} else {
				err = errf(abi.Internal, "evaluate: %v", r)
			}
		}
	}()
	m.big = ""
	f, err := m.function(p)
	if err != nil {
		return Value{}, err
	}
	var few [4]goja.Value
	args := few[:0]
	for _, name := range p.params {
		text := value(name)
		if len(text) == 0 {
			args = append(args, goja.Undefined())
			continue
		}
		arg, big, derr := decode(m.js, string(text), depth)
		m.big = cmp.Or(big, m.big)
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

// function returns the program's function in this VM.
func (m *jsVM) function(p *program) (goja.Callable, *abi.Error) {
	if f, ok := m.ready[p]; ok {
		return f, nil
	}
	v, err := m.js.RunProgram(p.code)
	if err != nil {
		return nil, m.failure(err)
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errf(abi.Internal, "compile: no function")
	}
	if m.ready != nil {
		if len(m.ready) >= maxPlans {
			clear(m.ready)
		}
		m.ready[p] = f
	}
	return f, nil
}

var (
	jsonTrue  = json.RawMessage("true")
	jsonFalse = json.RawMessage("false")
	jsonNull  = json.RawMessage("null")
	notFinite = []byte("NaN") // in the answer of a child: null, but NaN or an infinity
)

func (m *jsVM) result(v goja.Value) (Value, *abi.Error) {
	if o, ok := v.(*goja.Object); ok {
		if o.ClassName() == "Promise" {
			return Value{}, withHint(errf(abi.Plugin, "the result is a promise"), "an expression has no promises")
		}
	}
	out := Value{Truthy: v.ToBoolean()}
	if v.StrictEquals(m.js.ToValue(true)) {
		out.JSON = jsonTrue
		return out, nil
	}
	if v.StrictEquals(m.js.ToValue(false)) {
		out.JSON = jsonFalse
		return out, nil
	}
	if f, ok := v.Export().(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		out.JSON, out.NotFinite = jsonNull, true
		return out, nil
	}
	if s, ok := v.(goja.String); ok && s.Length() > maxResult { // JSON.stringify of it would take long
		return Value{}, errf(abi.Limit, "result: a text of %d characters, more than %d", s.Length(), maxResult)
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
	if strings.Contains(s, bigMark) {
		s = bigInts.ReplaceAllString(s, "$1")
	}
	out.JSON = json.RawMessage(s)
	return out, nil
}

// failure converts an error of goja.
func (m *jsVM) failure(err error) *abi.Error {
	var thrown *goja.Exception
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	switch {
	case errors.As(err, &interrupted):
		return errf(abi.Timeout, "evaluate: timed out")
	case errors.As(err, &overflow):
		return errf(abi.Limit, "evaluate: calls nested deeper than %d", callStack)
	case errors.As(err, &thrown):
		return m.exception(thrown)
	}
	return errf(abi.Internal, "evaluate: %v", err)
}

func (m *jsVM) exception(thrown *goja.Exception) *abi.Error {
	text := "a value without a text form"
	own := false // an Error that the author throws, rather than one of the engine's such as a TypeError
	// Reading a thrown value may run getters of the script.
	if m.js.Try(func() {
		v := thrown.Value()
		if o, ok := v.(*goja.Object); ok && o.ClassName() == "Error" {
			name := o.Get("name").String()
			text = o.Get("message").String()
			if own = name == "Error" && text != ""; !own {
				text = name + ": " + text
			}
			return
		}
		text = "threw " + v.String()
	}) != nil {
		text, own = "a value without a text form", false
	}
	// This text has addresses of goja's structures, which a replay would not
	// repeat.
	if strings.Contains(text, "Could not convert &") {
		text = "TypeError: Could not convert object to primitive value"
	}
	if own { // the text is for users, for whom a position in an expression means nothing
		return &abi.Error{Code: abi.Plugin, Permanent: true, Message: textcut.Mark(text, maxMessage)}
	}
	where := ""
	for _, frame := range thrown.Stack() {
		// The source begins on the second line of the compiled text.
		if p := frame.Position(); p.Line > 1 && frame.SrcName() != tameName {
			where = fmt.Sprintf(" at %s", position{p.Line - 1, p.Column})
			break
		}
	}
	e := abi.New(abi.Plugin, "expression"+where+": "+textcut.Mark(text, maxMessage))
	e.Permanent = true
	switch {
	case !strings.Contains(text, "BigInt"):
	case m.big != "":
		e.Hint = textcut.Mark(m.big, maxMessage) + " is over 2^53 and therefore a BigInt, which keeps its digits: " +
			"write BigInt($x) + 1n, which is right for every whole number, or Number($x), which rounds it"
	case strings.Contains(text, "mix"):
		e.Hint = "a whole number up to 2^53 is not a BigInt: write BigInt($x) + 1n, which is right for every whole number"
	}
	return e
}

// contextError returns the error for the end of a context.
func contextError(ctx context.Context) *abi.Error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return errf(abi.Timeout, "evaluate: %v", context.Cause(ctx))
	}
	return errf(abi.Cancelled, "evaluate: %v", context.Cause(ctx))
}

// pooled makes the VM keep the functions of programs between evaluations.
func (m *jsVM) pooled() *jsVM {
	m.ready = map[*program]goja.Callable{}
	return m
}
