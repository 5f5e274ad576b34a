package retry_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// delays returns the delays of all retries of an error, in milliseconds.
func delays(c retry.Classification, o sentinels.RetryPolicy) []int64 {
	var list []int64
	for n := 0; n < 100; n++ {
		d := retry.Decide(c, n, o, 0)
		if !d.Retry {
			break
		}
		list = append(list, d.Delay.Milliseconds())
	}
	return list
}

// TestWhenAsksForRetries: with a condition when, errors whose category has no retries have
// those of unknown errors; permanent ones still have none.
func TestWhenAsksForRetries(t *testing.T) {
	when := sentinels.RetryPolicy{When: "true"}
	syntax := retry.Classification{Category: retry.Syntax}
	if diff := cmp.Diff(ms(1, 2), delays(syntax, when)); diff != "" {
		t.Errorf("syntax (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ms(3, 6), delays(retry.Classification{Category: retry.Logic}, when)); diff != "" {
		t.Errorf("logic (-want +got):\n%s", diff)
	}
	syntax.Permanent = true
	if got := delays(syntax, when); got != nil {
		t.Errorf("a permanent error has the delays %v", got)
	}
}

// TestAnswersOfRequests: of the answers to a step of type http, those that a server may not give
// again are retried; those that blame the request only where a condition asks for it.
func TestAnswersOfRequests(t *testing.T) {
	api := ms(1, 2, 4, 8, 16, 32, 64)
	for code, c := range map[abi.Code]struct {
		category retry.Category
		want     []int64
	}{
		"http_500": {retry.API, api}, "http_502": {retry.API, api}, "http_503": {retry.API, api}, "http_429": {retry.API, api}, "http_425": {retry.API, api},
		"http_408": {retry.Timeout, ms(2, 4, 8, 16, 32)}, "http_504": {retry.API, api},
		"http_400": {retry.API, nil}, "http_401": {retry.API, nil}, "http_404": {retry.API, nil}, "http_302": {retry.API, nil}, "http_x": {retry.ManualReview, ms(1, 2)},
	} {
		class := retry.ClassifyError(abi.New(code, "GET http://a/: status 503"))
		if class.Category != c.category {
			t.Errorf("%s has the category %s, want %s", code, class.Category, c.category)
		}
		if diff := cmp.Diff(c.want, delays(class, sentinels.RetryPolicy{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", code, diff)
		}
	}
	missing := retry.ClassifyError(abi.New("http_404", "not found"))
	if diff := cmp.Diff(ms(1, 2), delays(missing, sentinels.RetryPolicy{When: "$error.code === 'http_404'"})); diff != "" {
		t.Errorf("with a condition (-want +got):\n%s", diff)
	}
}

// TestCategoriesOfConditions: the categories that conditions of a retry may name are all that
// an error can have.
func TestCategoriesOfConditions(t *testing.T) {
	want := append(role.Categories(), string(retry.Security), string(retry.Verification))
	sorted := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff(want, sentinels.ErrorCategories(), sorted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		category retry.Category
		sub      string
		want     []int64
	}{
		{retry.API, "rate", ms(1, 2, 4, 8, 16, 32, 64)},
		{retry.API, "network", ms(1, 2, 4, 8, 16, 32, 64)},
		{retry.API, "auth", ms(1, 2, 4, 8, 16, 32, 64)},
		{retry.API, "server_error", ms(1, 2, 4, 8, 16, 32, 64)},
		{retry.API, "http_404", ms(1, 2, 4, 8, 16, 32, 64)},
		{retry.Timeout, "general", ms(2, 4, 8, 16, 32)},
		{retry.Timeout, "execution", ms(2, 4, 8, 16, 32)},
		{retry.Runtime, "file", ms(5, 10, 15)},
		{retry.Logic, "null", ms(3, 6)},
		{retry.Logic, "not_found", ms(3, 6)},
		{retry.Syntax, "json", nil},
		{retry.Context, "tokens", ms(5)},
		{retry.ManualReview, "unclassified", ms(1, 2)},
		{retry.ManualReview, "empty_error", ms(1, 2)},
		{retry.ManualReview, "denied", nil},
		{retry.Security, "vuln", ms(5, 10, 15)},
		{retry.Verification, "tests", ms(5, 10, 15)},
		{"unknown", "general", nil},
	} {
		class := retry.Classification{Category: c.category, Subcategory: c.sub}
		if diff := cmp.Diff(c.want, delays(class, sentinels.RetryPolicy{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name(class), diff)
		}
	}
}

func ms(seconds ...int64) []int64 {
	for i := range seconds {
		seconds[i] *= 1000
	}
	return seconds
}

// categories are all categories of errors.
var categories = []retry.Category{
	retry.API, retry.Timeout, retry.Runtime, retry.Logic, retry.Syntax, retry.Context, retry.ManualReview, retry.Security, retry.Verification,
}

func TestEveryCategoryHasARow(t *testing.T) {
	for _, c := range categories {
		if !retry.HasStrategy(c) {
			t.Errorf("%s has no row", c)
		}
	}
}

func TestDecide(t *testing.T) {
	api := retry.Classification{Category: retry.API, Subcategory: "rate", Confidence: .8}
	d := retry.Decide(api, 0, sentinels.RetryPolicy{}, 0)
	if !d.Retry || d.Delay != time.Second || d.AttemptsRemaining != 6 {
		t.Errorf("first: %+v", d)
	}
	if d = retry.Decide(api, 6, sentinels.RetryPolicy{}, 0); !d.Retry || d.AttemptsRemaining != 0 || d.Delay != 64*time.Second {
		t.Errorf("last: %+v", d)
	}
	d = retry.Decide(api, 7, sentinels.RetryPolicy{}, time.Minute)
	if d.Retry || d.AttemptsRemaining != 0 || d.Delay != 0 {
		t.Errorf("exhausted: %+v", d)
	}
	if d = retry.Decide(api, -3, sentinels.RetryPolicy{}, 0); d.Delay != time.Second || d.AttemptsRemaining != 6 {
		t.Errorf("negative count: %+v", d)
	}
	if d = retry.Decide(api, math.MaxInt, sentinels.RetryPolicy{}, 0); d.Retry {
		t.Errorf("huge count: %+v", d)
	}
}

func TestPermanentIsNeverRetried(t *testing.T) {
	for _, category := range categories {
		c := retry.Classification{Category: category, Subcategory: "rate", Permanent: true}
		d := retry.Decide(c, 0, sentinels.RetryPolicy{MaxRetries: 9, BaseDelayMs: 1}, time.Second)
		if d.Retry || d.Delay != 0 {
			t.Errorf("%s: %+v", category, d)
		}
	}
}

func TestRetryAfterIsMinimum(t *testing.T) {
	c := retry.Classification{Category: retry.Timeout}
	for _, x := range []struct{ after, want time.Duration }{
		{0, 2 * time.Second}, {-time.Hour, 2 * time.Second}, {time.Second, 2 * time.Second}, {time.Minute, time.Minute},
		{retry.MaxRetryAfter, 24 * time.Hour}, {1_000_000_000 * time.Second, 24 * time.Hour}, // capped
	} {
		d := retry.Decide(c, 0, sentinels.RetryPolicy{MaxDelayMs: 5000}, x.after)
		if d.Delay != x.want {
			t.Errorf("after %v: %v, want %v", x.after, d.Delay, x.want)
		}
	}
}

// An error whose server asks for more than the step waits is not retried.
func TestMaxRetryAfter(t *testing.T) {
	c := retry.Classification{Category: retry.API}
	for after, want := range map[time.Duration]bool{0: true, time.Minute: true, time.Minute + 1: false, 48 * time.Hour: false} {
		d := retry.Decide(c, 0, sentinels.RetryPolicy{MaxRetryAfterMs: 60_000}, after)
		if d.Retry != want || want && d.Delay != max(after, time.Second) {
			t.Errorf("after %v: %+v", after, d)
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
		{"constant", retry.API, sentinels.RetryPolicy{MaxRetries: 3, BackoffType: "none", BaseDelayMs: 2000}, []int64{2000, 2000, 2000}},
		{"from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 2}, []int64{0, 0}},
		{"kind from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 3, BackoffType: "exponential"}, []int64{1000, 2000, 4000}},
		{"base from nothing", retry.Syntax, sentinels.RetryPolicy{MaxRetries: 2, BaseDelayMs: 500}, []int64{500, 1000}},
		{"no retries to change", retry.Syntax, sentinels.RetryPolicy{BaseDelayMs: 500}, nil},
	} {
		got := delays(retry.Classification{Category: c.category}, c.policy)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		s    retry.Backoff
		n    int
		want time.Duration
	}{
		{retry.Backoff{Type: "exponential", Base: time.Second}, 0, 0},
		{retry.Backoff{Type: "exponential", Base: time.Second}, -1, 0},
		{retry.Backoff{Type: "exponential", Base: time.Second}, 11, 1024 * time.Second},
		{retry.Backoff{Type: "exponential", Base: 3 * time.Second, Limit: time.Second}, 1, time.Second},
		{retry.Backoff{Type: "linear", Base: 3 * time.Second, Limit: 10 * time.Second}, 4, 10 * time.Second},
		{retry.Backoff{Type: "none", Base: time.Second}, 3, time.Second},
		{retry.Backoff{Type: "none", Base: 3 * time.Second, Limit: time.Second}, 3, time.Second},
		{retry.Backoff{Type: "odd", Base: time.Second}, 3, 0},
		{retry.Backoff{Type: "linear", Base: -time.Second}, 3, 0},
	} {
		if got := c.s.Delay(c.n); got != c.want {
			t.Errorf("%+v, %d: %v, want %v", c.s, c.n, got, c.want)
		}
	}
	for _, kind := range []string{"exponential", "linear"} {
		last := time.Duration(0)
		for _, n := range []int{1, 2, 10, 63, 64, 65, 1000, math.MaxInt32, math.MaxInt} {
			d := retry.Backoff{Type: kind, Base: time.Hour}.Delay(n)
			if d < last || d <= 0 {
				t.Errorf("%s, %d: %v after %v", kind, n, d, last)
			}
			last = d
		}
	}
}

// Of each pair of fields both have an effect with some values, or
// [sentinels.RetryPolicy.Ignored] reports the one that has none.
func TestEveryFieldHasAnEffect(t *testing.T) {
	effect := func(p sentinels.RetryPolicy) (all []retry.Decision) {
		for _, category := range categories {
			for made := range 9 {
				for _, after := range []time.Duration{0, 5 * time.Second, time.Hour} {
					all = append(all, retry.Decide(retry.Classification{Category: category}, made, p, after))
				}
			}
		}
		return all
	}
	type setting struct {
		field string // with the word of a backoff
		set   func(*sentinels.RetryPolicy)
	}
	var settings []setting
	for _, n := range []int{1, 8} {
		settings = append(settings, setting{"maxRetries", func(p *sentinels.RetryPolicy) { p.MaxRetries = n }})
	}
	for _, backoff := range []string{"exponential", "linear", "none"} {
		settings = append(settings, setting{"backoffType " + backoff, func(p *sentinels.RetryPolicy) { p.BackoffType = backoff }})
	}
	for _, ms := range []int64{100, 3000, 60_000} {
		settings = append(settings, setting{"baseDelayMs", func(p *sentinels.RetryPolicy) { p.BaseDelayMs = ms }},
			setting{"maxDelayMs", func(p *sentinels.RetryPolicy) { p.MaxDelayMs = ms }},
			setting{"maxRetryAfterMs", func(p *sentinels.RetryPolicy) { p.MaxRetryAfterMs = ms }})
	}
	type pair struct{ field, beside string }
	effective, silent := map[pair]bool{}, map[pair]sentinels.RetryPolicy{}
	fields := map[string]bool{}
	for _, one := range settings {
		name, _, _ := strings.Cut(one.field, " ")
		fields[name] = true
		for _, other := range settings {
			if strings.HasPrefix(other.field, name) {
				continue
			}
			var both, without sentinels.RetryPolicy
			one.set(&both)
			other.set(&both)
			other.set(&without)
			if p := (pair{one.field, other.field}); !cmp.Equal(effect(both), effect(without)) {
				effective[p] = true
			} else if ignored, _ := both.Ignored(); ignored != name {
				silent[p] = both
			}
		}
	}
	for p, policy := range silent {
		if !effective[p] {
			t.Errorf("%s has no effect beside %s, as in %+v", p.field, p.beside, policy)
		}
	}
	const conditions = 2 // when and unless depend on the error: TestWhenAsksForRetries, and runtime/testdata/retry_when.txtar
	if n := reflect.TypeFor[sentinels.RetryPolicy]().NumField(); n != len(fields)+conditions {
		t.Errorf("the policy has %d fields, %d are tested", n, len(fields)+conditions)
	}
}
