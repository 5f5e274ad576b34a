// Command conformance is the conformance guest of the Go SDK, which the ABI kit tests;
// ../abitest/GUEST.md specifies it. Its steps are written as a plugin's author would
// write them, with the typed methods of a Context.
package main

import (
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func main() {} // never called: a plugin is a library

func init() { sdk.Main(plugin) }

var plugin = sdk.Plugin{
	Name:    "conformance",
	Version: "1.0.0",
	Permissions: []sdk.Permission{
		{Use: sdk.UseCommand, Names: []string{"*"}, Reason: "the kit answers commands"},
		{Use: sdk.UseLLM, Reason: "the kit plays a model"},
		{Use: sdk.UseWatch, Reason: "the kit plays an execution"},
		{Use: sdk.UseSpawn, Names: []string{"*"}, Reason: "the kit plays a child"},
		{Use: sdk.UseEmit, Reason: "the kit hears events"},
		{Use: sdk.UseHTTP, Names: []string{"*.example.com"}, Reason: "the kit plays a server"},
		{Use: sdk.UseFolder, Names: []string{"data:rw"}, Reason: "the kit plays a folder"},
		{Use: sdk.UseSecret, Names: []string{"TOKEN"}, Reason: "the kit looks where it goes"},
		{Use: sdk.UseProvide, Names: []string{"command"}, Reason: "the kit looks for the role"},
	},
	Steps: []sdk.Step{
		{
			Type: "kit_echo", Summary: "Gives back its field and the run input.",
			Fields: `{"type":"object","properties":{"echo":{"description":"any value"}},"additionalProperties":false}`,
			Infer:  []string{"echo"}, Aliases: map[string]string{"say": "echo"}, ReadOnly: true,
			Output: `{"type":"object"}`, Provides: &sdk.Provides{As: sdk.RoleCommand, Name: "conformance/echo"},
			Run: echo, Validate: checkEcho,
		},
		{
			Type: "kit_fail", Summary: "Ends with an error, or panics.",
			Fields: `{"type":"object","properties":{"error":{"type":"object"},"panic":{"type":"string"}},"additionalProperties":false}`,
			Run:    fail,
		},
		{
			Type: "kit_call", Summary: "Makes one host call.",
			Fields: `{"type":"object","properties":{"call":{"type":"string"},"args":{"type":"object","x-sentinel":"raw"},"catch":{"type":"boolean"}},"required":["call"],"additionalProperties":false}`,
			Run:    call,
		},
		{
			Type: "kit_blocks", Summary: "Runs its steps as several blocks.",
			Fields: `{"type":"object","properties":{"steps":{"type":"array","x-sentinel":"steps"},"count":{"type":"integer"},"concurrency":{"type":"integer"},"failFast":{"type":"boolean"},"drain":{"type":"boolean"},"isolated":{"type":"boolean"},"total":{"type":"integer"}},"additionalProperties":false}`,
			Run:    blocks,
		},
		{
			Type: "kit_pages", Summary: "Reads pages with a checkpoint after each.",
			Fields: `{"type":"object","properties":{"pages":{"type":"integer"}},"additionalProperties":false}`,
			Run:    pages,
		},
	},
}

func echo(c *sdk.Context) (sdk.Value, error) {
	out := sdk.Object(
		sdk.F("echo", c.Field("echo")),
		sdk.F("type", sdk.String(c.Step.Type)),
		sdk.F("id", textOrNull(c.Step.ID)),
		sdk.F("name", textOrNull(c.Step.Name)),
		sdk.F("address", sdk.String(c.Step.Address)),
		sdk.F("path", sdk.String(c.Step.Path)),
		sdk.F("abi", sdk.Int(abi.Version)),
		sdk.F("attempt", sdk.Int(int64(c.Attempt))),
		sdk.F("iteration", sdk.Int(c.Run.Iteration)),
		sdk.F("run", sdk.String(c.Run.ID)),
		sdk.F("sentinel", sdk.String(c.Run.Sentinel)),
		sdk.F("workspace", sdk.String(c.Run.Workspace)),
		sdk.F("key", sdk.String(c.Run.Key)),
		sdk.F("state", c.State),
	)
	if c.Retry != nil {
		out = out.With("retry", sdk.Object(
			sdk.F("attempts", sdk.Int(c.Retry.Attempts)),
			sdk.F("code", sdk.String(string(c.Retry.Error.Code))),
			sdk.F("category", sdk.String(c.Retry.Category)),
		))
	}
	return out, nil
}

func textOrNull(s string) sdk.Value {
	if s == "" {
		return sdk.Null()
	}
	return sdk.String(s)
}

func checkEcho(fields sdk.Value) []sdk.Problem {
	if s, ok := fields.Get("echo").AsString(); ok && s == "bad" {
		return []sdk.Problem{{Field: "echo", Message: "is bad", Hint: "use good"}}
	}
	return nil
}

func fail(c *sdk.Context) (sdk.Value, error) {
	if text, ok := c.Field("panic").AsString(); ok {
		panic(text)
	}
	if e := sdk.ErrorFrom(c.Field("error")); e != nil {
		return sdk.Value{}, e
	}
	return sdk.Value{}, sdk.BadField("error", "is missing")
}

func blocks(c *sdk.Context) (sdk.Value, error) {
	count, err := c.IntField("count", 0, 1)
	if err != nil {
		return sdk.Value{}, err
	}
	concurrency, err := c.IntField("concurrency", 0, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	failFast, err := c.BoolField("failFast", false)
	if err != nil {
		return sdk.Value{}, err
	}
	list := make([]sdk.Block, count)
	for i := range list {
		list[i] = sdk.Block{Field: "steps", Vars: sdk.Object(sdk.F("i", sdk.Int(int64(i))))}
	}
	results, err := c.BlocksWith(list, sdk.BlockOptions{
		Concurrency: concurrency, FailFast: failFast, Drain: c.Field("drain").BoolOr(false), Isolated: c.Field("isolated").BoolOr(false), Total: c.Field("total").IntOr(0),
	})
	if err != nil {
		return sdk.Value{}, err
	}
	items := make([]sdk.Value, len(results))
	for i, r := range results {
		items[i] = sdk.Object(sdk.F("success", sdk.Bool(r.Success)), sdk.F("output", r.Output), sdk.F("error", sdk.ErrorValue(r.Error)))
		if r.Skipped {
			items[i] = items[i].With("skipped", sdk.Bool(true))
		}
	}
	return sdk.Object(sdk.F("blocks", sdk.List(items...)), sdk.F("steps", sdk.Int(c.Steps("steps")))), nil
}

func pages(c *sdk.Context) (sdk.Value, error) {
	n, err := c.IntField("pages", 0, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	from, sum := c.State.Get("next").IntOr(0), c.State.Get("sum").IntOr(0)
	for i := from; i < n; i++ {
		c.Info("page " + sdk.Int(i).String())
		page, err := c.Command("kit/page", sdk.Object(sdk.F("page", sdk.Int(i))))
		if err != nil {
			return sdk.Value{}, err
		}
		sum += page.Get("value").IntOr(0)
		if err := c.Checkpoint(sdk.Object(sdk.F("next", sdk.Int(i+1)), sdk.F("sum", sdk.Int(sum)))); err != nil {
			return sdk.Value{}, err
		}
	}
	return sdk.Object(sdk.F("sum", sdk.Int(sum)), sdk.F("from", sdk.Int(from))), nil
}
