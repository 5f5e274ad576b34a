// Package webhook implements the trigger kind that fires on HTTP requests. It
// authenticates the sender and makes an event of the body. It accepts CloudEvents
// in their three HTTP modes: binary, structured and batch.
package webhook
