package sdk

import (
	"runtime"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Caller answers host calls: the name of a host function and the text of a
// request in, the text of an answer out. Nil is the host of the module itself.
type Caller func(function, request string) (answer string)

// Run carries out one step: the text of a run input in, of a run output out,
// clauses A3 and A4 of ABI.md. The exports of a module call it with a nil
// caller; tests and native hosts bring their own.
func (p Plugin) Run(input string, caller Caller) (output string, fault *Error) {
	in, err := Parse(input)
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
	return Object(F("output", orNull(out))).String(), nil
}

// guarded turns a panic of the step into an error, because the text of an
// uncaught one reaches its author only through standard error. The trace goes
// there; it would tell a caller of the step nothing.
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
