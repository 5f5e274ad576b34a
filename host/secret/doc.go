// Package secret is where the HOST process has the values from that outgoing
// requests of step plugins carry by name and webhooks are compared with.
//
// A secret has a name, such as SLACK_TOKEN. Its value is what the operator's
// own configuration says, a variable or a file of mode 0600:
//
//	"secrets": {"SLACK_TOKEN": {"env": "SLACK_TOKEN"}, "DEPLOY_KEY": {"file": "/etc/sentinel/deploy"}}
//
// else the variable SENTINEL_SECRET_SLACK_TOKEN. A project says nothing of it:
// one that could name variables would have any of them sent away.
//
// Values are read when they are used, so a new one counts from the next
// request on, and nothing is handed out before the redactor knows it. One that
// is too short to be told from ordinary text, and so to be hidden, is refused.
package secret
