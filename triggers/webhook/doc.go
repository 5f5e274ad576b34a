// Package webhook is the trigger kind that fires when another program calls: it
// checks that the call comes from who knows the secret, and makes an event of
// the body. CloudEvents are understood in their three HTTP forms.
package webhook
