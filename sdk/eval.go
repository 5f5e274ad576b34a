package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Eval evaluates a JavaScript condition over the variables of the step's
// scope. Vars, an object or absent, shadows them for this evaluation. A source
// that does not parse, throws or takes too long is an error, never false.
func (c *Context) Eval(expression string, vars Value) (value Value, truthy bool, err error) {
	answer, err := c.call(abi.FuncEval, importEval, Object(F("expression", String(expression)), F("vars", vars)))
	if err != nil {
		return Value{}, false, err
	}
	return answer.Get("value"), answer.Get("truthy").BoolOr(false), nil
}

// EvalValue evaluates a JavaScript expression for its value. A value that JSON does not
// have (undefined, a function, NaN, an infinity) is an error, besides the errors of
// [Context.Eval].
func (c *Context) EvalValue(expression string) (Value, error) {
	answer, err := c.call(abi.FuncEval, importEval, Object(F("expression", String(expression)), F("strict", Bool(true))))
	if err != nil {
		return Value{}, err
	}
	return answer.Get("value"), nil
}
