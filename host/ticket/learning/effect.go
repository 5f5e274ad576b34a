package learning

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/ticket"
)

// A Trial compares attempts that were offered a rule at random with those that were not. A
// decision about the rule begins a new one.
type Trial struct {
	With    Group `json:"with"`
	Without Group `json:"without"`
	Looks   int   `json:"looks"` // comparisons that were made
}

// A Group counts attempts.
type Group struct {
	Attempts  int `json:"attempts"`
	Succeeded int `json:"succeeded"`
}

func (g *Group) add(success bool) {
	g.Attempts++
	if success {
		g.Succeeded++
	}
}

// Comparisons are made when the smaller group has 20, 40, 80, 160 and 320 attempts. Each
// accepts an error of 1 %, so that at most 5 % of the rules without an effect are ever
// taken for better, and as many for worse, however often the numbers are looked at.
const (
	firstLook = 20
	maxLooks  = 5
	errorRate = 0.01
)

// judge compares the groups if it is time to: 1 is better with the rule, -1 is worse.
func (t *Trial) judge() int {
	if t.Looks == maxLooks || min(t.With.Attempts, t.Without.Attempts) < firstLook<<t.Looks {
		return 0
	}
	t.Looks++
	switch {
	case exceeds(t.With, t.Without) <= errorRate:
		return 1
	case exceeds(t.Without, t.With) <= errorRate:
		return -1
	}
	return 0
}

// exceeds returns how probable it is that a group is at least so far ahead of another one
// if both succeed equally often: Fisher's exact test with one side. Unlike tests by normal
// distributions it holds for 20 attempts, and for shares near 0 and 1.
func exceeds(a, b Group) (p float64) {
	all, successes := a.Attempts+b.Attempts, a.Succeeded+b.Succeeded
	for x := a.Succeeded; x <= min(a.Attempts, successes); x++ {
		p += math.Exp(choose(a.Attempts, x) + choose(b.Attempts, successes-x) - choose(all, successes))
	}
	return p
}

// choose returns the logarithm of a binomial coefficient, minus infinity for 0.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	gamma := func(n int) float64 { v, _ := math.Lgamma(float64(n + 1)); return v }
	return gamma(n) - gamma(k) - gamma(n-k)
}

// measured reports whether a rule is offered at random. Those that a person wrote
// or accepted are always offered.
func (l *Learner) measured(r *Rule) bool {
	return l.opt.Trials && r.Trial.Looks < maxLooks && (r.State == Proposed || r.State == Active && r.DecidedBy == Measurement)
}

// drawn draws whether an attempt is offered a rule: half of the attempts a
// proposal, and four of five an active one. The same claim gets the same answer.
func drawn(r *Rule, ticket string, token uint64) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", r.ID, ticket, token, r.DecidedBy))
	n := binary.BigEndian.Uint64(sum[:8])
	if r.State == Proposed {
		return n%2 == 0
	}
	return n%5 != 0
}

// credit counts what became of an attempt for a rule that it was offered, or that was held
// out. verdict is 1 for success, -1 for failure and 0 for none.
func (l *Learner) credit(r *Rule, o *ticket.Offer, verdict int) {
	offered := slices.Contains(o.Rules, r.ID)
	if offered {
		r.Offered++
		switch verdict {
		case 1:
			r.Succeeded++
		case -1:
			r.Failed++
		}
	}
	// A trial that began after the offer has nothing to do with it.
	if verdict == 0 || !l.measured(r) || r.DecidedAt != nil && r.DecidedAt.After(o.At) {
		return
	}
	switch {
	case slices.Contains(o.Tried, r.ID):
		r.Trial.With.add(verdict == 1)
	case slices.Contains(o.HeldOut, r.ID):
		r.Trial.Without.add(verdict == 1)
	default:
		return
	}
	t := r.Trial
	why := fmt.Sprintf("%d of %d attempts with it succeeded, %d of %d without it", t.With.Succeeded, t.With.Attempts, t.Without.Succeeded, t.Without.Attempts)
	switch r.Trial.judge() {
	case 1:
		if r.State == Proposed {
			l.decided(r, Active, Measurement, why)
		}
	case -1:
		l.decided(r, Retired, Measurement, why)
	}
}
