package retry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// profileDelays returns every delay of an error until it is retried no more, in seconds.
func profileDelays(p retry.Profile, c retry.Classification) []float64 {
	var list []float64
	for n := 0; ; n++ {
		d := p.Decide(c, n, sentinels.RetryPolicy{}, 0)
		if !d.Retry {
			return list
		}
		list = append(list, d.Delay.Seconds())
	}
}

// "api: { maxRetries: 7, backoffType: 'exponential', baseDelayMs: 1000 }, timeout: 5
// exponential 2000, runtime: 3 linear 5000, logic: 2 linear 3000, syntax: 0 none,
// context: 1 linear 5000, manual_review: 0 none"
func TestSpecStrategiesFine(t *testing.T) {
	for category, want := range map[retry.Category][]float64{
		retry.API: {1, 2, 4, 8, 16, 32, 64}, retry.Timeout: {2, 4, 8, 16, 32}, retry.Runtime: {5, 10, 15}, retry.Logic: {3, 6},
		retry.Syntax: nil, retry.Context: {5}, retry.ManualReview: nil, retry.Security: {5, 10, 15}, retry.Verification: {5, 10, 15},
	} {
		if diff := cmp.Diff(want, profileDelays(retry.Fine(), retry.Classification{Category: category, Subcategory: "general"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", category, diff)
		}
	}
	if got := profileDelays(retry.Fine(), retry.ClassifyMessage("unknown words")); got != nil {
		t.Errorf("an unclassified error of a ticket is retried after %v", got)
	}
}

// "Transient errors (rate limits, timeouts) retry 3 times with exponential backoff; API
// errors retry 2 times with linear backoff; Code errors retry once then go to on_hold"
func TestSpecStrategiesCoarse(t *testing.T) {
	for text, want := range map[string][]float64{
		"429 Too Many Requests: rate limit exceeded": {1, 2, 4},
		"connect ECONNREFUSED 127.0.0.1:443":         {1, 2, 4},
		"operation timed out":                        {1, 2, 4},
		"HTTP 404 from the API":                      {2, 4},
		"SyntaxError: Unexpected token }":            {0},
		"TypeError: x is not a function":             {0},
		"ENOENT: no such file or directory":          {5, 10},
		"context length exceeded":                    {5},
		"unknown words":                              {5},
	} {
		c := retry.ClassifyMessage(text)
		if diff := cmp.Diff(want, profileDelays(retry.Coarse(), c)); diff != "" {
			t.Errorf("%q is %+v (-want +got):\n%s", text, c, diff)
		}
	}
}

func TestProfileNamed(t *testing.T) {
	for _, name := range []string{"fine", "coarse", "steps"} {
		p, ok := retry.ProfileNamed(name)
		s := p.Strategy(retry.Classification{Category: retry.Timeout})
		if !ok || s.MaxRetries == 0 || s.BackoffType != "exponential" || s.BaseDelayMs == 0 {
			t.Errorf("%s: %v %+v", name, ok, s)
		}
		if d := p.Decide(retry.Classification{Category: retry.API, Permanent: true}, 0, sentinels.RetryPolicy{}, time.Hour); d.Retry {
			t.Errorf("%s: a permanent error is retried", name)
		}
	}
	if _, ok := retry.ProfileNamed("other"); ok {
		t.Error("an unknown profile was found")
	}
}
