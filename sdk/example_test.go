package sdk_test

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// A plugin with one step type. Its main package would pass it to [sdk.Main]
// from init; here a function fakes the host.
func Example() {
	plugin := sdk.Plugin{
		Name:    "shout",
		Version: "1.0.0",
		Steps: []sdk.Step{{
			Type:    "shout",
			Summary: "Emits an event for a text.",
			Fields: `{
				"type": "object",
				"properties": {"text": {"type": "string", "description": "What to shout."}},
				"required": ["text"]
			}`,
			Run: func(c *sdk.Context) (sdk.Value, error) {
				text, err := c.StringField("text")
				if err != nil {
					return sdk.Value{}, err
				}
				id, err := c.Emit("shout", sdk.String(text+"!"))
				return sdk.Object(sdk.F("id", sdk.String(id))), err
			},
		}},
		Permissions: []sdk.Permission{{Use: sdk.UseEmit, Reason: "To shout."}},
	}
	output, fault := plugin.Run(
		`{"abi":1,"step":{"type":"shout","fields":{"text":"hey"}},"run":{"iteration":1},"attempt":1}`,
		func(function, request string) string {
			fmt.Println(function, request)
			return `{"ok":{"id":"e1"}}`
		})
	fmt.Println(output, fault == nil)
	// Output:
	// sentinel_emit {"event":"shout","data":"hey!"}
	// {"output":{"id":"e1"}} true
}
