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
