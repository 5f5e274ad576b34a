package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// GetVar reads a variable of the step's scope by its path: "build.lines[0]".
func (c *Context) GetVar(path string) (value Value, found bool, err error) {
	answer, err := c.call(abi.FuncVar, importVar, Object(F("get", String(path))))
	if err != nil {
		return Value{}, false, err
	}
	return answer.Get("value"), answer.Get("found").BoolOr(false), nil
}

// SetVars sets the variables that an object names in the step's scope, all at once.
func (c *Context) SetVars(values Value) error {
	_, err := c.call(abi.FuncVar, importVar, Object(F("set", values)))
	return err
}

// SetVar sets a variable in the step's scope.
func (c *Context) SetVar(name string, value Value) error {
	_, err := c.call(abi.FuncVar, importVar, Object(F("set", Object(F(name, orNull(value))))))
	return err
}
