package tracing

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure [New]. [FromEnv] makes them from the variables that are
// usual for OpenTelemetry.
type Options struct {
	// Endpoint is the URL that spans are posted to, such as
	// http://127.0.0.1:4318/v1/traces. Required.
	Endpoint string
	// Headers are sent along; they may hold keys and are never logged.
	Headers map[string]string
	// Compress sends bodies with gzip. Default: as they are.
	Compress bool
	// Timeout is how long one attempt to send may take. Default: 10 s.
	Timeout time.Duration
	// Patience is how long a batch is tried again before it is given up.
	// Default: 1 min.
	Patience time.Duration
	// Client sends. Default: one that follows no redirects, so that headers go
	// nowhere else.
	Client *http.Client

	// Service and Version name this program. Default: "sentinel", none.
	Service, Version string
	// Resource has further attributes of this process, such as its host's name.
	Resource map[string]string

	// Sample is the part of traces that is kept, above 0 to 1; a trace is kept
	// whole or not at all, on every host alike. Default: 1.
	Sample float64
	// Parent returns the W3C traceparent of the request that started a root run,
	// empty if there was none. It is asked when the process first hears of the
	// run or a child of it, and must not block. A parent that is not sampled
	// keeps the run from being so. Default: no run has a parent.
	Parent func(root sentinels.RunID) string

	// Queue is how many ended spans may wait to be sent; more are dropped and
	// counted. About 2 KB each. Default: 4,096.
	Queue int
	// Batch is how many are sent at once. Default: 512.
	Batch int
	// Every is how long a span waits for others. Default: 2 s.
	Every time.Duration
	// Open is how many steps under way are remembered; of those beyond, attempts
	// begin when they end. Default: 65,536.
	Open int
	// Logger receives a message when sending begins to fail, and when it works again.
	// Default: none.
	Logger *slog.Logger
}

// settle checks options and fills in what is left out. It reports every problem.
func (o *Options) settle() error {
	var bad []error
	if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		bad = append(bad, fmt.Errorf("endpoint %q: not an http or https URL", o.Endpoint))
	}
	if !(o.Sample >= 0 && o.Sample <= 1) {
		bad = append(bad, fmt.Errorf("sample %v: not between 0 and 1", o.Sample))
	}
	if err := errors.Join(bad...); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if o.Sample == 0 {
		o.Sample = 1
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{{&o.Timeout, 10 * time.Second}, {&o.Patience, time.Minute}, {&o.Every, 2 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.standard
		}
	}
	for _, n := range []struct {
		field    *int
		standard int
	}{{&o.Queue, 4096}, {&o.Batch, 512}, {&o.Open, 65536}} {
		if *n.field <= 0 {
			*n.field = n.standard
		}
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if o.Service == "" {
		o.Service = "sentinel"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
