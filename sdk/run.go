package sdk

import (
	"runtime"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Caller answers host calls: it gets the name of a host function and the text of a
// request, and returns the text of the answer. Nil is the host of the module.
type Caller func(function, request string) (answer string)

// Run executes one step: it gets the text of a run input and returns the text of a run
// output, clauses A3 and A4 of ABI.md. The exports of a module call it with a nil
// caller; tests and native hosts pass their own.
func (p Plugin) Run(input string, caller Caller) (output string, fault *Error) {
	in, err := (&parser{text: input, handles: caller == nil}).all()
	if err != nil {
		return "", abi.New(abi.Internal, "run input: "+err.Error())
	}
	if v := in.Get("abi").IntOr(0); v != abi.Version {
		return "", abi.New(abi.Internal, "run input: abi "+strconv.FormatInt(v, 10)+", want "+strconv.Itoa(abi.Version))
	}
	c := newContext(in, caller)
	s := p.step(c.Step.Type)
	if s == nil {
		return "", BadField("type", "plugin "+Quote(p.Name)+" has no step type "+Quote(c.Step.Type))
	}
	out, err := guarded(s.Run, c)
	if err != nil {
		return "", AsError(err)
	}
	return Object(F("output", orNull(out))).encode(), nil
}

// guarded converts a panic of the step to an error, because the text of an uncaught
// panic is only on standard error. The stack trace is written there, because it does
// not help the users of the step.
func guarded(run func(*Context) (Value, error), c *Context) (out Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			trace := make([]byte, 4<<10)
			print(string(trace[:runtime.Stack(trace, false)]))
			err = Permanent(abi.New(abi.Trap, "step "+Quote(c.Step.Type)+": panic: "+panicText(r)))
		}
	}()
	return run(c)
}

func panicText(r any) string {
	switch r := r.(type) {
	case error:
		return r.Error()
	case string:
		return r
	}
	return "a value without a text"
}

// Check answers the validate export, clause A1.3 of ABI.md.
func (p Plugin) Check(input string) (output string, fault *Error) {
	in, err := Parse(input)
	if err != nil {
		return "", abi.New(abi.Internal, "validate input: "+err.Error())
	}
	problems := List()
	if s := p.step(in.Get("type").StringOr("")); s != nil && s.Validate != nil {
		var items []Value
		for _, problem := range s.Validate(in.Get("fields")) {
			items = append(items, Object(
				F("field", String(problem.Field)), F("message", String(problem.Message)), F("hint", Text(problem.Hint))))
		}
		problems = List(items...)
	}
	return Object(F("problems", problems)).String(), nil
}

func orNull(v Value) Value {
	if v.Exists() {
		return v
	}
	return Null()
}
