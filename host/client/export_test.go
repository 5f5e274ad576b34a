package client

import "time"

// SetLastWords changes how long a run that is over may still be heard.
func (c *Client) SetLastWords(d time.Duration) { c.lastWords = d }

// Take has a watch at a cursor take one message.
func Take(text []byte, cursor string, fn func(Message) error) (string, error) {
	w := watcher{cursor: &cursor, hello: func() error { return nil }, fn: fn}
	err := w.take(text)
	return cursor, err
}
