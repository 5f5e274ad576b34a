package abitest

import (
	"context"
	"slices"
)

// CheckHost checks the clauses that a host implements by itself, with guests of the
// kit. Clauses that involve the rest of an engine, such as grants, are not checked.
func CheckHost(ctx context.Context, host Host) Report {
	checks := slices.Concat(lifeChecks, errorChecks, timeChecks, limitChecks, wasiChecks)
	slices.SortStableFunc(checks, byClause)
	var report Report
	for _, c := range checks {
		report = append(report, runCheck(ctx, host, nil, nil, c))
	}
	return report
}

// TestHost checks a host, with one subtest for each check. T is *testing.T.
func TestHost[T Test[T]](t T, host Host) {
	t.Helper()
	reportTo(t, CheckHost(t.Context(), host))
}

// load loads a guest of the folder guests for the rest of a check.
func (j *judge) load(name string) (done func()) {
	guest, err := j.host.Load(j.ctx, module("guests/"+name))
	if err != nil {
		j.fatalf("load the guest %s: %s", name, errorText(err))
	}
	j.guest = guest
	return func() {
		if err := guest.Close(); err != nil {
			j.faultf("close the guest %s: %v", name, err)
		}
	}
}

// with runs f with a loaded guest.
func with(name string, f func(j *judge)) func(*judge) {
	return func(j *judge) {
		defer j.load(name)()
		f(j)
	}
}

// raw runs the guest once with an input that is not a run input: the guests of the kit
// have numbers and texts as input.
func (j *judge) raw(inv Invocation, input string) (output any, err error) {
	inv.Input = []byte(input)
	if inv.Clock.IsZero() {
		inv.Clock = epoch
	}
	result, err := j.guest.Run(j.ctx, inv)
	if err != nil {
		j.clean(err)
		return nil, err
	}
	return j.read("output", result.Output), nil
}

// gives runs the guest and compares its output.
func (j *judge) gives(inv Invocation, input, want string) {
	got, err := j.raw(inv, input)
	if err != nil {
		j.faultf("with %s: %s, want %s", brief(input, 100), errorText(err), want)
		return
	}
	j.want("output with "+brief(input, 100), must(want), got, nil)
}

// answering is a host that returns the same answer for every call.
func answering(answer string) CallFunc {
	return func(context.Context, string, []byte) (Reply, error) { return Reply{Body: []byte(answer)}, nil }
}

// counting is a host that counts the calls it answers.
func counting(n *int) CallFunc {
	return func(context.Context, string, []byte) (Reply, error) {
		*n++
		return Reply{Body: []byte(`{"ok":1}`)}, nil
	}
}
