package httpproblem

import (
	"net/http"
	"strconv"
	"time"
)

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
