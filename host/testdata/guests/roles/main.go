// Command roles is a plugin in Go whose step types have roles, for benchmarks.
package main

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const (
	text  = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	lines = `{"type":"object","properties":{"lines":{"type":"array"}},"required":["lines"],"additionalProperties":false}`
	fault = `{"type":"object","properties":{"message":{"type":"string"},"code":{"type":"string"},"source":{"type":"string"},"exitCode":{"type":"integer"}},"required":["message"],"additionalProperties":false}`
)

func init() {
	sdk.Main(sdk.Plugin{
		Name: "roles", Version: "1.0.0", Stateless: true,
		Permissions: []sdk.Permission{{Use: sdk.UseProvide, Names: []string{"command", "error_classifier", "output_classifier"}, Reason: "Benchmarks use them."}},
		Steps: []sdk.Step{
			{Type: "roles_echo", Summary: "Says it again.", Fields: text, Output: text, ReadOnly: true, Provides: &sdk.Provides{As: sdk.RoleCommand, Name: "roles/echo"}, Run: func(c *sdk.Context) (sdk.Value, error) {
				return sdk.Object(sdk.F("text", c.Field("text"))), nil
			}},
			{Type: "roles_errors", Summary: "Knows widgets.", Fields: fault, Provides: &sdk.Provides{As: sdk.RoleErrorClassifier}, Run: func(c *sdk.Context) (sdk.Value, error) {
				if strings.Contains(c.Field("message").StringOr(""), "widget") {
					return sdk.Object(sdk.F("category", sdk.String("api"))), nil
				}
				return sdk.Null(), nil
			}},
			{Type: "roles_lines", Summary: "Knows tests.", Fields: lines, Provides: &sdk.Provides{As: sdk.RoleOutputClassifier}, Run: func(c *sdk.Context) (sdk.Value, error) {
				var out []sdk.Value
				for _, l := range c.Field("lines").Items() {
					class := sdk.Null()
					if strings.Contains(l.Get("text").StringOr(""), "PASSED") {
						class = sdk.Object(sdk.F("classification", sdk.String("success")))
					}
					out = append(out, class)
				}
				return sdk.Object(sdk.F("lines", sdk.List(out...))), nil
			}},
		},
	})
}

func main() {} // never called: a plugin is a library
