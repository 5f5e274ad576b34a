package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// An exporter posts batches of spans. One goroutine uses it.
type exporter struct {
	opt  Options
	down bool // the last batch was given up and logged
}

// maxAnswer bounds what is read of a collector's answer, in bytes.
const maxAnswer = 64 << 10

// The pauses between attempts double from first to longest.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
)

// export sends a batch, trying again while that makes sense, and returns how
// many of its spans the collector refused. What goes wrong is logged once, when
// it begins.
func (x *exporter) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) (refused int, err error) {
	body, err := x.encode(spans)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.opt.Patience)
	defer cancel()
	pause := firstPause
	for {
		var after time.Duration
		var again bool
		refused, after, again, err = x.post(ctx, body)
		if err == nil || !again {
			break
		}
		wait := max(after, pause/2+rand.N(pause/2)) // half of it random: many hosts may have lost the same collector
		pause = min(2*pause, longestPause)
		if !sleep(ctx, wait) {
			break
		}
	}
	switch {
	case err != nil && !x.down:
		x.opt.Logger.Warn("traces cannot be sent", "endpoint", x.opt.Endpoint, "error", err)
	case err == nil && x.down:
		x.opt.Logger.Info("traces are sent again", "endpoint", x.opt.Endpoint)
	}
	x.down = err != nil
	return refused, err
}

// sleep waits for d; false means that ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// post makes one attempt. again says that another may do better, after the
// pause that the collector asked for.
func (x *exporter) post(ctx context.Context, body []byte) (refused int, after time.Duration, again bool, err error) {
	attempt, cancel := context.WithTimeout(ctx, x.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(attempt, http.MethodPost, x.opt.Endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, 0, false, fmt.Errorf("send spans: %w", err)
	}
	for k, v := range x.opt.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	if x.opt.Compress {
		req.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := x.opt.Client.Do(req)
	if err != nil {
		return 0, 0, ctx.Err() == nil, fmt.Errorf("send spans: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return 0, 0, true, fmt.Errorf("send spans: %w", err)
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return x.partial(text), 0, false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true // those that the protocol names
	}
	return 0, retryAfter(answer.Header.Get("Retry-After")), again, fmt.Errorf("send spans: %s: %s", answer.Status, textcut.Mark(string(text), maxText))
}

// retryAfter reads the header's seconds; its other form, a date, is rare and
// our own pause does as well. What is asked for is bounded by our patience.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// partial reads how many spans of an accepted batch were refused all the same.
func (x *exporter) partial(answer []byte) int {
	var v struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a 64-bit number: in JSON mostly a string
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &v) != nil {
		return 0 // an empty answer, or protobuf's: the status has said that all is well
	}
	n, err := strconv.Atoi(string(bytes.Trim(v.PartialSuccess.RejectedSpans, `"`)))
	if err != nil || n <= 0 {
		return 0
	}
	x.opt.Logger.Warn("spans were refused", "endpoint", x.opt.Endpoint, "count", n, "error", textcut.Mark(v.PartialSuccess.ErrorMessage, maxText))
	return n
}

// encode makes the body of a batch, once for all attempts to send it.
func (x *exporter) encode(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	b, err := json.Marshal(request(spans))
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	if !x.opt.Compress {
		return b, nil
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(b)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	return out.Bytes(), nil
}
