// Command outside is a step plugin that carries a file of a folder to a server,
// with a secret, and keeps what comes back. The host's tests build it.
package main

import "github.com/sentinel-runtime/sentinel/sdk"

func main() {}

func init() {
	sdk.Main(sdk.Plugin{
		Name: "outside", Version: "1",
		Steps: []sdk.Step{{
			Type: "outside", Summary: "Carries a file to a server.", Run: run,
			Fields: `{"type":"object","properties":{
				"url": {"type":"string","description":"Where it goes."},
				"elsewhere": {"type":"string","description":"Where the secret must not go."},
				"fail": {"type":"boolean","description":"Ends with what came back as its error."}
			},"required":["url"]}`,
		}},
		Permissions: []sdk.Permission{
			{Use: sdk.UseHTTP, Names: []string{"*.example.com"}, Reason: "Carries the file."},
			{Use: sdk.UseFolder, Names: []string{"data:rw"}, Reason: "Has the file."},
			{Use: sdk.UseSecret, Names: []string{"TOKEN"}, Reason: "Says who carries it."},
		},
	})
}

func run(c *sdk.Context) (sdk.Value, error) {
	url, err := c.StringField("url")
	if err != nil {
		return sdk.Value{}, err
	}
	data := c.Folder("data")
	in, err := data.Read("in/file.txt")
	if err != nil {
		return sdk.Value{}, err
	}
	r, err := c.HTTP(sdk.Request{
		Method: "POST", URL: url + "?token={{secret.TOKEN}}", BodySecrets: true,
		Headers: sdk.Object(sdk.F("authorization", sdk.String("Bearer {{secret.TOKEN}}")), sdk.F("content-type", sdk.String("application/json"))),
		Body:    `{"key":"{{secret.TOKEN}}","file":` + sdk.String(string(in)).String() + `}`,
	})
	if err != nil {
		return sdk.Value{}, err
	}
	c.Info("got " + r.Body + " with " + r.Headers.String())
	if c.Field("fail").BoolOr(false) {
		return sdk.Value{}, sdk.Permanent(sdk.Fail(sdk.CodePlugin, r.Body))
	}
	if err := data.Write("out/answer.txt", []byte(r.Body)); err != nil {
		return sdk.Value{}, err
	}
	entries, err := data.List("")
	if err != nil {
		return sdk.Value{}, err
	}
	// Each of these is refused; a plugin may say so.
	refused := []sdk.Value{}
	refuse := func(err error) {
		e := sdk.AsError(err)
		if e == nil {
			e = sdk.Fail("", "it was not refused")
		}
		refused = append(refused, sdk.String(string(e.Code)+": "+e.Message))
	}
	_, err = c.HTTP(sdk.Request{URL: c.Field("elsewhere").StringOr("https://other.example.com/") + "{{secret.TOKEN}}"})
	refuse(err)
	_, err = c.HTTP(sdk.Request{URL: url + "{{secret.OTHER}}"})
	refuse(err)
	_, err = c.Folder("etc").Read("passwd")
	refuse(err)
	_, err = data.Read("../secret.txt")
	refuse(err)
	refuse(data.Write(".git/hooks/post-commit", []byte("x")))
	_, err = data.Read("link")
	refuse(err)
	return sdk.Object(
		sdk.F("body", sdk.String(r.Body)), sdk.F("headers", r.Headers), sdk.F("entries", sdk.Int(int64(len(entries)))), sdk.F("refused", sdk.List(refused...)),
	), nil
}
