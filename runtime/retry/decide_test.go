package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// delays returns the delays of all retries of an error, in milliseconds.
func delays(p retry.Profile, c retry.Classification, o sentinels.RetryPolicy) []int64 {
	var list []int64
	for n := 0; n < 100; n++ {
		d := retry.Decide(p, c, n, o, 0, nil)
		if !d.Retry {
			break
		}
		list = append(list, d.Delay.Milliseconds())
	}
	return list
}

func TestTables(t *testing.T) {
	step3 := []int64{1000, 2000}
	for _, c := range []struct {
		category           retry.Category
		sub                string
		fine, coarse, step []int64
		class              string // of the coarse profile
	}{
		{retry.API, "rate", ms(1, 2, 4, 8, 16, 32, 64), ms(1, 2, 4), nil, "transient"},
		{retry.API, "network", ms(1, 2, 4, 8, 16, 32, 64), ms(1, 2, 4), nil, "transient"},
		{retry.API, "auth", ms(1, 2, 4, 8, 16, 32, 64), ms(2, 4), nil, "api_error"},
		{retry.API, "server_error", ms(1, 2, 4, 8, 16, 32, 64), ms(2, 4), nil, "api_error"},
		{retry.API, "http_404", ms(1, 2, 4, 8, 16, 32, 64), ms(2, 4), nil, "api_error"},
		{retry.Timeout, "general", ms(2, 4, 8, 16, 32), ms(1, 2, 4), nil, "transient"},
		{retry.Timeout, "execution", ms(2, 4, 8, 16, 32), ms(1, 2, 4), nil, "transient"},
		{retry.Runtime, "file", ms(5, 10, 15), ms(5, 10), nil, "system_error"},
		{retry.Logic, "null", ms(3, 6), ms(0), nil, "code_error"},
		{retry.Logic, "not_found", nil, nil, ms(3, 6), "code_error"},
		{retry.Syntax, "json", nil, ms(0), nil, "code_error"},
		{retry.Context, "tokens", ms(5), ms(5), nil, "unknown"},
		{retry.ManualReview, "unclassified", nil, ms(5), step3, "unknown"},
		{retry.ManualReview, "empty_error", nil, ms(5), step3, "unknown"},
		{retry.ManualReview, "denied", nil, ms(5), nil, "unknown"},
		{retry.Security, "vuln", ms(5, 10, 15), ms(0), nil, "code_error"},
		{retry.Verification, "tests", ms(5, 10, 15), ms(0), nil, "code_error"},
	} {
		class := retry.Classification{Category: c.category, Subcategory: c.sub}
		if c.step == nil {
			c.step = c.fine
		}
		for _, p := range []struct {
			profile retry.Profile
			want    []int64
		}{{retry.Fine(), c.fine}, {retry.Coarse(), c.coarse}, {retry.Step(), c.step}} {
			if diff := cmp.Diff(p.want, delays(p.profile, class, sentinels.RetryPolicy{})); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", p.profile.Name, name(class), diff)
			}
		}
		if _, got := retry.Coarse().Strategy(class); got != c.class {
			t.Errorf("coarse, %s: class %s, want %s", name(class), got, c.class)
		}
	}
}

func ms(seconds ...int64) []int64 {
	for i := range seconds {
		seconds[i] *= 1000
	}
	return seconds
}

func TestEveryCategoryHasARow(t *testing.T) {
	for _, p := range []retry.Profile{retry.Fine(), retry.Coarse(), retry.Step()} {
		for _, c := range retry.Categories() {
			if _, class := p.Strategy(retry.Classification{Category: c, Subcategory: "general"}); class == "" {
				t.Errorf("%s: %s has no class", p.Name, c)
			}
		}
	}
	if s, class := (retry.Profile{}).Strategy(retry.Classification{Category: retry.API}); s.MaxRetries != 0 || class != "api" {
		t.Errorf("empty profile: %+v, %s", s, class)
	}
}

func TestDecide(t *testing.T) {
	api := retry.Classification{Category: retry.API, Subcategory: "rate", Confidence: .8}
	d := retry.Decide(retry.Fine(), api, 0, sentinels.RetryPolicy{}, 0, nil)
	if !d.Retry || d.Delay != time.Second || d.AttemptsRemaining != 6 || d.Reason != retry.ReasonRetry || d.Class != "api" || d.Explanation() != "" {
		t.Errorf("first: %+v", d)
	}
	if d = retry.Decide(retry.Fine(), api, 6, sentinels.RetryPolicy{}, 0, nil); !d.Retry || d.AttemptsRemaining != 0 || d.Delay != 64*time.Second {
		t.Errorf("last: %+v", d)
	}
	d = retry.Decide(retry.Fine(), api, 7, sentinels.RetryPolicy{}, time.Minute, nil)
	if d.Retry || d.AttemptsRemaining != 0 || d.Delay != 0 || d.Reason != retry.ReasonMaxRetries {
		t.Errorf("exhausted: %+v", d)
	}
	if got, want := d.Explanation(), "Max retries exceeded for api error (7 attempts)"; got != want {
		t.Errorf("explanation %q, want %q", got, want)
	}
	if d = retry.Decide(retry.Fine(), api, -3, sentinels.RetryPolicy{}, 0, nil); d.Delay != time.Second || d.AttemptsRemaining != 6 {
		t.Errorf("negative count: %+v", d)
	}
	if d = retry.Decide(retry.Fine(), api, math.MaxInt, sentinels.RetryPolicy{}, 0, nil); d.Retry {
		t.Errorf("huge count: %+v", d)
	}
}

func TestPermanentIsNeverRetried(t *testing.T) {
	c := retry.Classification{Category: retry.API, Subcategory: "rate", Permanent: true}
	for _, p := range []retry.Profile{retry.Fine(), retry.Coarse(), retry.Step()} {
		d := retry.Decide(p, c, 0, sentinels.RetryPolicy{MaxRetries: 9, BaseDelayMs: 1}, time.Second, nil)
		if d.Retry || d.Delay != 0 || d.Reason != retry.ReasonPermanent || d.Explanation() == "" {
			t.Errorf("%s: %+v", p.Name, d)
		}
	}
}

func TestRetryAfterIsMinimum(t *testing.T) {
	c := retry.Classification{Category: retry.Timeout}
	for _, x := range []struct{ after, want time.Duration }{
		{0, 2 * time.Second}, {-time.Hour, 2 * time.Second}, {time.Second, 2 * time.Second}, {time.Minute, time.Minute},
		{retry.MaxRetryAfter, 24 * time.Hour}, {1_000_000_000 * time.Second, 24 * time.Hour}, // capped
	} {
		d := retry.Decide(retry.Fine(), c, 0, sentinels.RetryPolicy{MaxDelayMs: 5000}, x.after, nil)
		if d.Delay != x.want {
			t.Errorf("after %v: %v, want %v", x.after, d.Delay, x.want)
		}
	}
	d := retry.Decide(retry.Fine(), c, 0, sentinels.RetryPolicy{}, time.Minute, func() float64 { return 0 })
	if d.Delay != time.Minute {
		t.Errorf("jitter reduced the delay below retryAfter: %v", d.Delay)
	}
}

func TestJitter(t *testing.T) {
	c := retry.Classification{Category: retry.API}
	for r, want := range map[float64]time.Duration{0: 0, .25: time.Second, .5: 2 * time.Second, 1: 4 * time.Second, 7: 4 * time.Second, -1: 0} {
		if d := retry.Decide(retry.Fine(), c, 2, sentinels.RetryPolicy{}, 0, func() float64 { return r }); d.Delay != want {
			t.Errorf("jitter %v: %v, want %v", r, d.Delay, want)
		}
	}
}

func TestOverride(t *testing.T) {
	for _, c := range []struct {
		name     string
		category retry.Category
		policy   sentinels.RetryPolicy
		want     []int64
	}{
		{"count", retry.API, sentinels.RetryPolicy{MaxRetries: 2}, []int64{1000, 2000}},
		{"kind", retry.Logic, sentinels.RetryPolicy{MaxRetries: 3, BackoffType: "exponential"}, []int64{3000, 6000, 12000}},
		{"base", retry.API, sentinels.RetryPolicy{MaxRetries: 3, BaseDelayMs: 10}, []int64{10, 20, 40}},
		{"cap", retry.API, sentinels.RetryPolicy{MaxDelayMs: 5000}, []int64{1000, 2000, 4000, 5000, 5000, 5000, 5000}},
		{"none", retry.Runtime, sentinels.RetryPolicy{BackoffType: "none"}, []int64{0, 0, 0}},
		{"from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 2}, []int64{0, 0}},
		{"kind from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 3, BackoffType: "exponential"}, []int64{1000, 2000, 4000}},
		{"base from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 2, BaseDelayMs: 500}, []int64{500, 1000}},
		{"no retries to change", retry.Syntax, sentinels.RetryPolicy{BaseDelayMs: 500}, nil},
	} {
		got := delays(retry.Fine(), retry.Classification{Category: c.category}, c.policy)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		s    retry.Strategy
		n    int
		want time.Duration
	}{
		{retry.Strategy{Backoff: retry.Exponential, Base: time.Second}, 0, 0},
		{retry.Strategy{Backoff: retry.Exponential, Base: time.Second}, -1, 0},
		{retry.Strategy{Backoff: retry.Exponential, Base: time.Second}, 11, 1024 * time.Second},
		{retry.Strategy{Backoff: retry.Exponential, Base: 3 * time.Second, Cap: time.Second}, 1, time.Second},
		{retry.Strategy{Backoff: retry.Linear, Base: 3 * time.Second, Cap: 10 * time.Second}, 4, 10 * time.Second},
		{retry.Strategy{Backoff: retry.None, Base: time.Second}, 3, 0},
		{retry.Strategy{Backoff: "odd", Base: time.Second}, 3, 0},
		{retry.Strategy{Backoff: retry.Linear, Base: -time.Second}, 3, 0},
		{retry.Review(), 1, 5 * time.Second},
		{retry.Review(), 2, 10 * time.Second},
	} {
		if got := retry.Delay(c.s, c.n); got != c.want {
			t.Errorf("%+v, %d: %v, want %v", c.s, c.n, got, c.want)
		}
	}
	for _, kind := range []string{retry.Exponential, retry.Linear} {
		last := time.Duration(0)
		for _, n := range []int{1, 2, 10, 63, 64, 65, 1000, math.MaxInt32, math.MaxInt} {
			d := retry.Delay(retry.Strategy{Backoff: kind, Base: time.Hour}, n)
			if d < last || d <= 0 {
				t.Errorf("%s, %d: %v after %v", kind, n, d, last)
			}
			last = d
		}
	}
	if retry.Review().MaxRetries != 2 {
		t.Error("Review does not have two retries")
	}
}
