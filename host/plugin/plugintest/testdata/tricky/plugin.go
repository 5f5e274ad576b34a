// Command tricky is a plugin whose steps do what tests of plugins must notice.
package main

import "github.com/sentinel-runtime/sentinel/sdk"

var plugin = sdk.Plugin{
	Name:    "tricky",
	Version: "1",
	Steps: []sdk.Step{
		{
			Type: "tricky_post", Summary: "Posts a text and emits what came back.",
			Fields:  `{"type":"object","properties":{"text":{"type":"string"},"say":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
			Aliases: map[string]string{"message": "text"},
			Run:     post,
			Validate: func(fields sdk.Value) []sdk.Problem {
				if fields.Get("text").StringOr("") == "bad" {
					return []sdk.Problem{{Field: "text", Message: "is bad", Hint: "use good"}}
				}
				return nil
			},
		},
		{
			Type: "tricky_pages", Summary: "Emits an event a page.",
			Fields: `{"type":"object","properties":{"steps":{"x-sentinel":"steps"},"pages":{"type":"integer"},"lost":{"type":"boolean"}}}`,
			Run:    pages,
		},
	},
	Permissions: []sdk.Permission{
		{Use: sdk.UseHTTP, Names: []string{"example.com"}, Reason: "To post."},
		{Use: sdk.UseEmit, Reason: "To tell."},
	},
	Stateless: true,
}

func post(c *sdk.Context) (sdk.Value, error) {
	text, err := c.StringField("text")
	if err != nil {
		return sdk.Value{}, err
	}
	c.Info("posting " + text)
	res, err := c.HTTP(sdk.Request{Method: "POST", URL: "https://example.com/", Body: text})
	if err != nil {
		return sdk.Value{}, sdk.Wrap("post", err)
	}
	if res.Status != 200 {
		return sdk.Value{}, sdk.RetryAfter(sdk.Fail(sdk.CodeUnavailable, "the server is busy"), 1500)
	}
	id, err := c.Emit("posted", sdk.String(res.Body))
	return sdk.Object(sdk.F("id", sdk.String(id)), sdk.F("attempt", sdk.Int(int64(c.Attempt)))), err
}

// pages checkpoints after each page. With lost it ignores its state and starts
// from the beginning.
func pages(c *sdk.Context) (sdk.Value, error) {
	lost, err := c.BoolField("lost", false)
	if err != nil {
		return sdk.Value{}, err
	}
	count, err := c.IntField("pages", 0, c.Steps("steps"))
	if err != nil {
		return sdk.Value{}, err
	}
	next := c.State.IntOr(0)
	if lost {
		next = 0
	}
	for ; next < count; next++ {
		if _, err := c.Emit("page", sdk.Int(next)); err != nil {
			return sdk.Value{}, err
		}
		if err := c.Checkpoint(sdk.Int(next + 1)); err != nil {
			return sdk.Value{}, err
		}
	}
	return sdk.Int(next), nil
}

func init() { sdk.Main(plugin) }

func main() {}
