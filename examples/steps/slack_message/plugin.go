// Command slack_message is a step plugin that posts a message to Slack, with a
// token that it never sees: the host puts it into the request.
package main

import "github.com/sentinel-runtime/sentinel/sdk"

// The limits are Slack's own: https://docs.slack.dev/reference/methods/chat.postMessage
const fields = `{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 40000, "description": "The message, in Slack's mrkdwn. With blocks: what notifications show."},
    "channel": {"type": "string", "pattern": "^[#@]?[^\\s,]{1,80}$", "description": "Id or name: C0123456789, #builds. Not with webhook, which has one of its own."},
    "blocks": {"type": "array", "maxItems": 50, "items": {"type": "object"}, "description": "Block Kit blocks."},
    "thread": {"type": "string", "pattern": "^\\d+\\.\\d+$", "description": "Answer to this message: the ts of an earlier output."},
    "unfurl": {"type": "boolean", "default": false, "description": "Show previews of links."},
    "webhook": {"type": "string", "pattern": "^[A-Za-z0-9]+/[A-Za-z0-9]+/(\\{\\{secret\\.SLACK_WEBHOOK\\}\\})$", "description": "Post through an incoming webhook in place of a token: T012345/B012345/{{secret.SLACK_WEBHOOK}}, the last part of its address being the secret."}
  },
  "anyOf": [{"required": ["text"]}, {"required": ["blocks"]}],
  "additionalProperties": false
}`

var plugin = sdk.Plugin{
	Name:    "slack_message",
	Version: "1.0.0",
	Steps: []sdk.Step{{
		Type:     "slack_message",
		Summary:  "Posts a message to Slack.",
		Fields:   fields,
		Run:      run,
		Validate: check,
	}},
	Permissions: []sdk.Permission{
		{Use: sdk.UseHTTP, Names: []string{"slack.com", "hooks.slack.com"}, Reason: "Messages are posted there."},
		{Use: sdk.UseSecret, Names: []string{"SLACK_TOKEN", "SLACK_WEBHOOK"}, Reason: "The host puts the bot's token, or the secret part of a webhook's address, into the request. One of them is enough."},
	},
}

// check wants one way to the channel.
func check(fields sdk.Value) []sdk.Problem {
	webhook, channel := fields.Get("webhook").Given(), fields.Get("channel").Given()
	switch {
	case webhook && channel:
		return []sdk.Problem{{Field: "channel", Message: "a webhook has a channel of its own", Hint: "leave out channel or webhook"}}
	case webhook && fields.Get("thread").Given():
		return []sdk.Problem{{Field: "thread", Message: "a webhook cannot answer a message", Hint: "post with a token, without webhook"}}
	case !webhook && !channel:
		return []sdk.Problem{{Field: "channel", Message: "is missing", Hint: "give channel, or webhook"}}
	}
	return nil
}

func init() { sdk.Main(plugin) }

func main() {} // never runs: a plugin is a library to its host
