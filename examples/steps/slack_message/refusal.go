package main

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// limited is the error of a request that came too soon. Slack says in seconds
// when the next one may come.
func limited(res sdk.Response) error {
	e := sdk.Fail(sdk.CodeUnavailable, "slack: too many messages, Slack asks to wait")
	seconds, err := strconv.ParseInt(res.Headers.Get("retry-after").StringOr(""), 10, 64)
	if err != nil || seconds < 1 {
		seconds = 30 // Slack sends it always; if it is missing, wait long enough
	}
	return sdk.RetryAfter(e, seconds*1000)
}

// A meaning is what one of Slack's words for an error is to a step.
type meaning struct {
	code  sdk.Code
	field string
	hint  string
}

// meanings are those that say what a person has to do. All of them stay true
// when the same message is posted again.
var meanings = map[string]meaning{
	"invalid_auth":            {sdk.CodeDenied, "", "the secret SLACK_TOKEN is not a valid token"},
	"not_authed":              {sdk.CodeDenied, "", "the secret SLACK_TOKEN is empty"},
	"token_revoked":           {sdk.CodeDenied, "", "the token was revoked; make a new one"},
	"token_expired":           {sdk.CodeDenied, "", "the token expired; make a new one"},
	"account_inactive":        {sdk.CodeDenied, "", "the token's app or user was removed from the workspace"},
	"missing_scope":           {sdk.CodeDenied, "", "give the app the scope chat:write"},
	"not_in_channel":          {sdk.CodeDenied, "channel", "invite the app to the channel: /invite @app"},
	"restricted_action":       {sdk.CodeDenied, "channel", "the workspace does not let the app post there"},
	"action_prohibited":       {sdk.CodeDenied, "webhook", "the workspace does not let the webhook post"},
	"channel_not_found":       {sdk.CodeNotFound, "channel", "give its id, or invite the app if the channel is private"},
	"no_service":              {sdk.CodeNotFound, "webhook", "the webhook was removed or never was"},
	"invalid_token":           {sdk.CodeDenied, "webhook", "the secret SLACK_WEBHOOK is not the webhook's"},
	"is_archived":             {sdk.CodeConflict, "channel", "the channel is archived"},
	"channel_is_archived":     {sdk.CodeConflict, "channel", "the channel is archived"},
	"thread_not_found":        {sdk.CodeNotFound, "thread", "give the ts of a message of that channel"},
	"msg_too_long":            {sdk.CodeBadFields, "text", "Slack takes 40,000 characters"},
	"no_text":                 {sdk.CodeBadFields, "text", ""},
	"invalid_blocks":          {sdk.CodeBadFields, "blocks", "try them in Slack's Block Kit Builder"},
	"invalid_blocks_format":   {sdk.CodeBadFields, "blocks", "try them in Slack's Block Kit Builder"},
	"invalid_payload":         {sdk.CodeBadFields, "blocks", "try them in Slack's Block Kit Builder"},
	"messages_tab_disabled":   {sdk.CodeDenied, "channel", "the app does not take direct messages"},
	"ekm_access_denied":       {sdk.CodeDenied, "", "the workspace's administrator suspended the app's access"},
	"team_access_not_granted": {sdk.CodeDenied, "", "the token is not for that workspace"},
}

// refusal is the error for one of Slack's words.
func refusal(word string, res sdk.Response) error {
	word = strings.TrimSpace(word)
	if word == "ratelimited" || word == "rate_limited" {
		return limited(res)
	}
	m, known := meanings[word]
	if !known {
		// fatal_error, service_unavailable and whatever comes next: the host's
		// own rules decide whether to retry.
		return sdk.Fail(sdk.CodePlugin, "slack: "+sdk.Cut(word, 200))
	}
	e := sdk.Fail(m.code, "slack: "+word)
	e.Field, e.Hint = m.field, m.hint
	return sdk.Permanent(e)
}
