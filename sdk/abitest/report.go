package abitest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// A Report has one outcome for each check, in the order of ABI.md.
type Report []Outcome

// An Outcome is the result of one check.
type Outcome struct {
	Clause  string // "A3.1"
	Name    string // what was checked
	Faults  []string
	Skipped string // why it was not checked; else empty
	Took    time.Duration
}

// OK reports whether the check was executed and found no fault.
func (o Outcome) OK() bool { return len(o.Faults) == 0 && o.Skipped == "" }

// Failed returns the outcomes with faults.
func (r Report) Failed() Report {
	var failed Report
	for _, o := range r {
		if len(o.Faults) > 0 {
			failed = append(failed, o)
		}
	}
	return failed
}

// String returns a table with one line for each outcome and its faults.
func (r Report) String() string {
	var b strings.Builder
	for _, o := range r {
		verdict := "ok  "
		switch {
		case len(o.Faults) > 0:
			verdict = "FAIL"
		case o.Skipped != "":
			verdict = "skip"
		}
		fmt.Fprintf(&b, "%s  %-5s  %s\n", verdict, o.Clause, o.Name)
		for _, fault := range o.Faults {
			fmt.Fprintf(&b, "             %s\n", fault)
		}
		if o.Skipped != "" {
			fmt.Fprintf(&b, "             %s\n", o.Skipped)
		}
	}
	return b.String()
}

// A Test has the methods of *testing.T that the kit uses, with T as the type itself. With
// this interface, programs that print reports do not link package testing.
type Test[T any] interface {
	Context() context.Context
	Helper()
	Run(name string, f func(T)) bool
	Error(args ...any)
	Fatal(args ...any)
	Skip(args ...any)
}

// reportTo runs one subtest for each outcome of a report.
func reportTo[T Test[T]](t T, report Report) {
	t.Helper()
	for _, o := range report {
		t.Run(o.Clause+" "+o.Name, func(t T) {
			t.Helper()
			for _, fault := range o.Faults {
				t.Error(fault)
			}
			if o.Skipped != "" {
				t.Skip(o.Skipped)
			}
		})
	}
}

// A check is one test of the kit.
type check struct {
	clause string
	name   string
	run    func(*judge)
}

// maxFaults limits the faults of one check: a guest that breaks one text usually breaks
// a hundred of them.
const maxFaults = 8

// judge runs one check and collects its faults. It is used by one goroutine.
type judge struct {
	ctx     context.Context
	host    Host
	module  []byte
	guest   Guest // nil in checks of hosts
	outcome Outcome
}

// stop is the panic value that ends a check.
type stop struct{}

// faultf adds a fault.
func (j *judge) faultf(format string, args ...any) {
	switch n := len(j.outcome.Faults); {
	case n < maxFaults:
		j.outcome.Faults = append(j.outcome.Faults, brief(fmt.Sprintf(format, args...), 2000))
	case n == maxFaults:
		j.outcome.Faults = append(j.outcome.Faults, "and more faults")
	}
}

// fatalf adds a fault and ends the check.
func (j *judge) fatalf(format string, args ...any) {
	j.faultf(format, args...)
	panic(stop{})
}

// runCheck runs one check.
func runCheck(ctx context.Context, host Host, module []byte, guest Guest, c check) (o Outcome) {
	j := &judge{ctx: ctx, host: host, module: module, guest: guest, outcome: Outcome{Clause: c.clause, Name: c.name}}
	began := time.Now()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stop); !ok {
				panic(r)
			}
		}
		o = j.outcome
		o.Took = time.Since(began)
	}()
	c.run(j)
	return o
}

// byClause orders checks as in ABI.md; checks of one clause keep their order.
func byClause(a, b check) int {
	var x, y [2]int
	_, _ = fmt.Sscanf(a.clause, "A%d.%d", &x[0], &x[1]) // a whole section, "A8", has no second number
	_, _ = fmt.Sscanf(b.clause, "A%d.%d", &y[0], &y[1])
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
}

// brief cuts a text for a message.
func brief(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:n], ""), len(text))
}
