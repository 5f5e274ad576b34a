// Package endpoint has what the clients of servers that a person configures share: which
// addresses they accept, and the delay that a server asks for.
package endpoint

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Parse returns the address of a server that may get messages and tokens: https, or http on
// this machine, with a host and without credentials. ok is false for every other text.
func Parse(text string) (at *url.URL, ok bool) {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.User != nil {
		return nil, false
	}
	return at, at.Scheme == "https" || at.Scheme == "http" && Loopback(at.Hostname())
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// longestRetryAfter is the longest delay that a server can ask for.
const longestRetryAfter = time.Hour

// RetryAfter returns the delay that a server asks for with the header Retry-After, in
// seconds or as a date: 0 if it asks for none, at most an hour.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return bounded(time.Duration(min(seconds, 1e6)) * time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), longestRetryAfter) }
