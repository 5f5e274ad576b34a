package main

import "github.com/sentinel-runtime/sentinel/sdk"

// timeoutMs is how long Slack may take; it answers in well under a second.
const timeoutMs = 15_000

// run posts the message. Its output is {ok, channel, ts}: ts is the message's
// id, for answers to it. A webhook tells neither channel nor ts.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	text, err := c.StringField("text")
	if err != nil {
		return sdk.Value{}, err
	}
	unfurl, err := c.BoolField("unfurl", false)
	if err != nil {
		return sdk.Value{}, err
	}
	message := sdk.Object(
		sdk.F("text", sdk.Text(text)),
		sdk.F("blocks", c.Field("blocks")),
		sdk.F("unfurl_links", sdk.Bool(unfurl)),
		sdk.F("unfurl_media", sdk.Bool(unfurl)),
	)
	if webhook := c.Field("webhook").StringOr(""); webhook != "" {
		return throughWebhook(c, webhook, message)
	}
	return withToken(c, message.With("channel", c.Field("channel")).With("thread_ts", c.Field("thread")))
}

// withToken calls Slack's API, which says what came of it in the body: the
// status is 200 for a channel that is not there, too.
func withToken(c *sdk.Context, message sdk.Value) (sdk.Value, error) {
	res, err := post(c, "https://slack.com/api/chat.postMessage", message, sdk.F("authorization", sdk.String("Bearer {{secret.SLACK_TOKEN}}")))
	if err != nil {
		return sdk.Value{}, err
	}
	answer, err := sdk.Parse(res.Body)
	if err != nil || res.Status != 200 {
		return sdk.Value{}, sdk.Fail(sdk.CodeUnavailable, "slack: the answer is no message of Slack's: status "+sdk.Int(int64(res.Status)).String()+" "+sdk.Cut(res.Body, 200))
	}
	if !answer.Get("ok").BoolOr(false) {
		return sdk.Value{}, refusal(answer.Get("error").StringOr("unknown_error"), res)
	}
	for _, warning := range answer.Get("response_metadata").Get("warnings").Items() {
		c.Warn("slack: " + warning.StringOr(""))
	}
	return sdk.Object(sdk.F("ok", sdk.Bool(true)), sdk.F("channel", answer.Get("channel")), sdk.F("ts", answer.Get("ts"))), nil
}

// throughWebhook posts to an address that is itself the permission. The answer
// is the text "ok", or one of the words that the API uses.
func throughWebhook(c *sdk.Context, webhook string, message sdk.Value) (sdk.Value, error) {
	res, err := post(c, "https://hooks.slack.com/services/"+webhook, message, sdk.Field{})
	if err != nil {
		return sdk.Value{}, err
	}
	if res.Status != 200 {
		return sdk.Value{}, refusal(res.Body, res)
	}
	return sdk.Object(sdk.F("ok", sdk.Bool(true))), nil
}

// post makes the request. Being told to wait, and a server in trouble, are
// errors that a retry mends.
func post(c *sdk.Context, url string, message sdk.Value, header sdk.Field) (sdk.Response, error) {
	headers := sdk.Object(sdk.F("content-type", sdk.String("application/json; charset=utf-8")), header)
	res, err := c.HTTP(sdk.Request{Method: "POST", URL: url, Headers: headers, Body: message.String(), TimeoutMs: timeoutMs})
	switch {
	case err != nil:
		return res, sdk.Wrap("slack", err)
	case res.Status == 429:
		return res, limited(res)
	case res.Status >= 500:
		return res, sdk.Fail(sdk.CodeUnavailable, "slack: status "+sdk.Int(int64(res.Status)).String())
	}
	return res, nil
}
