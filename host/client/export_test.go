package client

import "time"

// SetLastWords changes how long a run that is over may still be heard.
func (c *Client) SetLastWords(d time.Duration) { c.lastWords = d }
