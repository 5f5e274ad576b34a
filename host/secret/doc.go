// Package secret resolves secrets by name, for outgoing requests of step plugins
// and for the signatures of webhooks.
//
// A secret has a name, such as SLACK_TOKEN. The operator's configuration names
// the source of its value, a variable or a file of mode 0600:
//
//	"secrets": {"SLACK_TOKEN": {"env": "SLACK_TOKEN"}, "DEPLOY_KEY": {"file": "/etc/sentinel/deploy"}}
//
// The default is the variable SENTINEL_SECRET_SLACK_TOKEN. A project cannot name
// sources, since it could then have any variable sent to a server of its own.
//
// Values are read when they are used, so a new one counts from the next
// request on, and nothing is handed out before the redactor knows it. One that
// is too short to be distinguished from ordinary text, and so to be hidden, is refused.
package secret
