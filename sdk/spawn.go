package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Spawn starts a child run of the definition in a field with the mark definition,
// exactly once. It does not wait for the run: see [Context.WaitRun].
func (c *Context) Spawn(field string, inputs Value) (run, sentinel string, err error) {
	return c.spawn(Object(F("field", String(field)), F("inputs", inputs)))
}

// SpawnNamed starts a child run of the sentinel with that id.
func (c *Context) SpawnNamed(id string, inputs Value) (run string, err error) {
	run, _, err = c.spawn(Object(F("sentinel", String(id)), F("inputs", inputs)))
	return run, err
}

func (c *Context) spawn(request Value) (run, sentinel string, err error) {
	answer, err := c.call(abi.FuncSpawn, importSpawn, request)
	if err != nil {
		return "", "", err
	}
	return answer.Get("run").StringOr(""), answer.Get("sentinel").StringOr(""), nil
}
