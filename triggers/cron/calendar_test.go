package cron_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/triggers/cron"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func plan(t testing.TB, expression, zoneName string) cron.Plan {
	t.Helper()
	p, err := cron.ParsePlan(expression, zone(t, zoneName), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestT4DaylightSaving covers clauses T4.6 and T4.7: a skipped time fires once, a
// repeated time fires once, an hourly schedule continues.
func TestT4DaylightSaving(t *testing.T) {
	for _, c := range []struct {
		name, zone, expression string
		from                   string // local
		want                   []string
	}{
		{
			"skipped hour", "Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"a skipped time and one at the end of the gap fire once", "Europe/Berlin", "30 2,3 * * *", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		},
		{
			"several skipped times fire once", "Europe/Berlin", "*/10 2 * * *", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		{
			"repeated hour", "Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		{
			"every hour in spring", "Europe/Berlin", "0 * * * *", "2026-03-29T00:30:00+01:00",
			[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		},
		{
			"every hour in autumn", "Europe/Berlin", "0 * * * *", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		},
		{
			"every half hour in autumn", "America/New_York", "*/30 * * * *", "2026-11-01T01:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:00:00-05:00"},
		},
		{
			"spring in New York", "America/New_York", "15 2 * * *", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:15:00-04:00"},
		},
		{
			"half an hour is skipped", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		{
			"half an hour is repeated", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		{
			"a missing day", "Pacific/Apia", "0 9 30 * *", "2011-12-01T00:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-30T09:00:00+14:00"},
		},
		{
			"no midnight", "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, z := plan(t, c.expression, c.zone), zone(t, c.zone)
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range c.want {
				at = p.Next(at)
				got = append(got, at.In(z).Format(time.RFC3339))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", c.expression, c.zone, diff)
			}
		})
	}
}

// wallTime returns the wall clock time of a zone at an instant, as UTC.
func wallTime(at time.Time, z *time.Location) time.Time {
	l := at.In(z)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
}

// oracle returns the planned times in (from, until]. It steps through all minutes
// and applies the clauses literally.
func oracle(minute, hour, date, month, weekday func(int) bool, either, elapsed bool, z *time.Location, from, until time.Time) []time.Time {
	fits := func(w time.Time) bool {
		d, wd := date(w.Day()), weekday(int(w.Weekday()))
		onDay := d && wd
		if either {
			onDay = d || wd
		}
		return minute(w.Minute()) && hour(w.Hour()) && month(int(w.Month())) && onDay
	}
	var out []time.Time
	start := from.Add(-72 * time.Hour)
	reached := wallTime(start, z)
	for at := start; !at.After(until); at = at.Add(time.Minute) {
		now := wallTime(at, z)
		fires := false
		if elapsed {
			fires = fits(now)
		} else {
			for reached.Before(now) {
				reached = reached.Add(time.Minute)
				fires = fires || fits(reached)
			}
		}
		if fires && at.After(from) {
			out = append(out, at)
		}
	}
	return out
}

// field returns a random field and a function that reports which values it allows.
func field(r *rand.Rand, least, most int) (string, func(int) bool) {
	switch r.IntN(4) {
	case 0:
		return "*", func(int) bool { return true }
	case 1:
		step := 2 + r.IntN(9)
		return fmt.Sprintf("*/%d", step), func(n int) bool { return (n-least)%step == 0 }
	case 2:
		a := least + r.IntN(most-least+1)
		b := a + r.IntN(most-a+1)
		return fmt.Sprintf("%d-%d", a, b), func(n int) bool { return n >= a && n <= b }
	default:
		var list []string
		var set []int
		for range 1 + r.IntN(4) {
			n := least + r.IntN(most-least+1)
			list, set = append(list, fmt.Sprint(n)), append(set, n)
		}
		return strings.Join(list, ","), func(n int) bool { return slices.Contains(set, n) }
	}
}

// transitions are instants close to changes of a zone's offset.
var transitions = []struct {
	zone string
	at   []string
}{
	{"Europe/Berlin", []string{"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2040-03-25T01:00:00Z"}},
	{"America/New_York", []string{"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"}},
	{"Australia/Lord_Howe", []string{"2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z"}},
	{"Pacific/Apia", []string{"2011-12-30T10:00:00Z", "2012-03-31T14:00:00Z"}},
	{"America/Sao_Paulo", []string{"2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z"}},
	{"Africa/Casablanca", []string{"2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"}},
	{"Asia/Kathmandu", []string{"1985-12-31T18:30:00Z"}},
	{"America/Caracas", []string{"2016-05-01T07:00:00Z", "2007-12-09T07:00:00Z"}},
	{"Antarctica/Troll", []string{"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"}},
	{"Europe/Madrid", []string{"2040-12-31T00:00:00Z", "2041-01-01T00:00:00Z"}}, // the standard library ends the period a day early
	{"UTC", []string{"2028-02-29T00:00:00Z"}},
}

// TestT4MatchesOracle compares plans of random expressions with the oracle, close
// to transitions.
func TestT4MatchesOracle(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for i, c := range transitions {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		z := zone(t, c.zone)
		for _, text := range c.at {
			middle, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			from, until := middle.Add(-36*time.Hour), middle.Add(48*time.Hour)
			for range rounds {
				minuteText, minute := field(r, 0, 59)
				hourText, hour := field(r, 0, 23)
				if r.IntN(2) == 0 { // most transitions are at night
					h := r.IntN(4)
					hourText, hour = fmt.Sprint(h), func(n int) bool { return n == h }
				}
				dateText, date := "*", func(int) bool { return true }
				weekdayText, weekday := "*", func(int) bool { return true }
				if r.IntN(3) == 0 {
					dateText, date = field(r, 1, 31)
				}
				if r.IntN(3) == 0 {
					weekdayText, weekday = field(r, 0, 6)
				}
				month := func(int) bool { return true }
				expression := strings.Join([]string{minuteText, hourText, dateText, "*", weekdayText}, " ")
				elapsed := true
				for h := range 24 {
					elapsed = elapsed && hour(h)
				}
				either := dateText[0] != '*' && weekdayText[0] != '*'
				want := oracle(minute, hour, date, month, weekday, either, elapsed, z, from, until)
				check(t, expression, c.zone, from, until, want)
			}
		}
	}
}

func check(t *testing.T, expression, zoneName string, from, until time.Time, want []time.Time) {
	t.Helper()
	p := plan(t, expression, zoneName)
	var got []time.Time
	for at := p.Next(from); !at.IsZero() && !at.After(until); at = p.Next(at) {
		got = append(got, at)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q in %s from %s (-want +got):\n%s", expression, zoneName, from, diff)
	}
	if n := p.Count(from, until); n != len(want) {
		t.Fatalf("%q in %s: count %d, want %d", expression, zoneName, n, len(want))
	}
	for _, k := range []int{1, 2, len(want)} {
		if k < 1 || k > len(want) {
			continue
		}
		if back := p.Back(from, until, k); !back.Equal(want[len(want)-k]) {
			t.Fatalf("%q in %s: back %d is %s, want %s", expression, zoneName, k, back, want[len(want)-k])
		}
	}
}

// TestNextFromEarlierTimes checks that a planned time does not depend on the time
// from which next searches.
func TestNextFromEarlierTimes(t *testing.T) {
	p := plan(t, "30 2 * * *", "Europe/Berlin")
	want := p.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	for at := want.Add(-10 * time.Hour); at.Before(want); at = at.Add(7*time.Minute + 300*time.Millisecond) {
		if got := p.Next(at); !got.Equal(want) {
			t.Fatalf("from %s: %s, want %s", at, got, want)
		}
	}
}

// TestT4Days covers clause T4.4: either day field is enough unless one begins
// with a star.
func TestT4Days(t *testing.T) {
	for expression, want := range map[string][]string{
		"0 0 13 * fri":         {"2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"},
		"0 0 */100,1-7 * mon":  {"2026-01-05", "2026-02-02", "2026-03-02", "2026-04-06"},
		"0 0 * * 7":            {"2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"},
		"0 0 * * 5-7":          {"2026-01-02", "2026-01-03", "2026-01-04", "2026-01-09"},
		"0 0 * * FRI-sun/2":    {"2026-01-02", "2026-01-04", "2026-01-09", "2026-01-11"},
		"0 0 * * 0":            {"2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"},
		"0 0 * * 4/2":          {"2026-01-03", "2026-01-08", "2026-01-10", "2026-01-15"},
		"0 0 31 * *":           {"2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"},
		"0 0 29 2 ?":           {"2028-02-29", "2032-02-29", "2036-02-29", "2040-02-29"},
		"0 0 */28 2 mon":       {"2027-02-01", "2038-02-01", "2044-02-01", "2044-02-29"},
		"0 0 0 1 jan,Jul *":    {"2026-07-01", "2027-01-01", "2027-07-01", "2028-01-01"},
		"@monthly":             {"2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01"},
		"CRON_TZ=UTC @weekly":  {"2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"},
		"TZ=UTC   0 0 1 */6 *": {"2026-07-01", "2027-01-01", "2027-07-01", "2028-01-01"},
	} {
		var p cron.Plan
		var err error
		if strings.Contains(expression, "TZ=") {
			p, err = cron.ParsePlan(expression, nil, time.Time{})
		} else {
			p, err = cron.ParsePlan(expression, time.UTC, time.Time{})
		}
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range want {
			at = p.Next(at)
			got = append(got, at.Format(time.DateOnly))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", expression, diff)
		}
	}
}

// TestT4Every covers clause T4.3: intervals count from when the trigger was first
// armed.
func TestT4Every(t *testing.T) {
	since := time.Date(2026, 3, 29, 0, 0, 7, 600, time.UTC)
	p, err := cron.ParsePlan("@every 90m", nil, since)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 3, 29, 1, 30, 7, 0, time.UTC)
	for after, want := range map[time.Time]time.Time{
		since:                             first,
		since.Add(-time.Hour):             first,
		first:                             first.Add(90 * time.Minute),
		first.Add(100 * 90 * time.Minute): first.Add(101 * 90 * time.Minute),
		first.Add(100*90*time.Minute - 1): first.Add(100 * 90 * time.Minute),
	} {
		if got := p.Next(after); !got.Equal(want) || !got.After(after) {
			t.Errorf("next of %s is %s, want %s", after, got, want)
		}
	}
	if n := p.Count(since, first.Add(9*90*time.Minute)); n != 10 {
		t.Errorf("count %d, want 10", n)
	}
	if got := p.Back(since, first.Add(9*90*time.Minute), 10); !got.Equal(first) {
		t.Errorf("back %s, want %s", got, first)
	}
}

// FuzzNext checks that next returns, that its result is later than its argument,
// and that count and back agree with it.
func FuzzNext(f *testing.F) {
	for _, s := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 1", "@every 7s", "*/7 1-5 3 * *", "0 0 */29 2 mon", "59 59 23 31 12 0"} {
		f.Add(s, int64(1774700000), "Europe/Berlin")
		f.Add(s, int64(1325239200), "Pacific/Apia")
		f.Add(s, int64(-5000000000), "America/New_York")
	}
	f.Fuzz(func(t *testing.T, expression string, at int64, zoneName string) {
		z, err := time.LoadLocation(zoneName)
		if err != nil {
			return
		}
		p, err := cron.ParsePlan(expression, z, time.Unix(at, 0))
		if err != nil {
			return
		}
		after := time.Unix(at%(1<<33), at%1e9)
		for range 5 {
			next := p.Next(after)
			if next.IsZero() {
				return
			}
			if !next.After(after) {
				t.Fatalf("%q in %s: next of %s is %s", expression, zoneName, after, next)
			}
			if n := p.Count(after, next); n != 1 {
				t.Fatalf("%q in %s: %d times after %s until %s", expression, zoneName, n, after, next)
			}
			if back := p.Back(after, next, 1); !back.Equal(next) {
				t.Fatalf("%q in %s: back of %s is %s", expression, zoneName, next, back)
			}
			after = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, e := range []string{"* * * * *", "0 9 * * 1-5", "30 2 1 1 *"} {
		b.Run(e, func(b *testing.B) {
			p, at := plan(b, e, "Europe/Berlin"), time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
			for b.Loop() {
				p.Next(at)
			}
		})
	}
}
