package plugintest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Script answers the host calls of one step from fakes. Log lines and
// checkpoints need none, and the time is [Base] where it is not faked.
//
// # Concurrency
//
// A Script serves one step at a time.
type Script struct {
	fakes    []Fake
	used     []bool
	ordered  bool
	next     int      // of ordered fakes
	problems []string // calls that an ordered script does not have
}

// Base is when every step that is tried begins.
var Base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Answers makes a script of which each fake answers the first call that it
// fits, whenever that comes; a call without one is denied.
func Answers(fakes []Fake) *Script { return &Script{fakes: fakes, used: make([]bool, len(fakes))} }

// InOrder makes a script that expects just these calls, one after the other.
func InOrder(fakes []Fake) *Script {
	s := Answers(fakes)
	s.ordered = true
	return s
}

// answer returns what a call gets; faked is false for what the host itself says.
func (s *Script) answer(function string, request json.RawMessage) (body json.RawMessage, faked bool) {
	if s.ordered {
		if s.next < len(s.fakes) && s.fakes[s.next].Function == function {
			f := s.fakes[s.next]
			s.next++
			if !f.fits(function, request) {
				s.problems = append(s.problems, fmt.Sprintf("call %d: request: %s", s.next, mismatch(f.Request, request)))
			}
			return f.body(), true
		}
	} else {
		for i, f := range s.fakes {
			if !s.used[i] && f.fits(function, request) {
				s.used[i] = true
				return f.body(), true
			}
		}
	}
	switch function {
	case abi.FuncLog, abi.FuncCheckpoint:
		return json.RawMessage(`{"ok":{}}`), true
	case abi.FuncNow:
		return fmt.Appendf(nil, `{"ok":{"unixMs":%d,"iso":%q}}`, Base.UnixMilli(), Base.Format(time.RFC3339)), true
	}
	if s.ordered {
		want := "no further call"
		if s.next < len(s.fakes) {
			want = s.fakes[s.next].Function
		}
		s.problems = append(s.problems, fmt.Sprintf("call %d: want %s, got %s %s", s.next+1, want, function, request))
	}
	denied := Fake{Error: &abi.Error{Code: abi.Denied, Message: function + ": no fake answer for this call", Hint: "add one to the fakes"}}
	return denied.body(), false
}

// left says which fakes nothing asked for.
func (s *Script) left() []string {
	var out []string
	for i, f := range s.fakes {
		if s.ordered && i >= s.next || !s.ordered && !s.used[i] {
			out = append(out, fmt.Sprintf("call %d, %s, was not made", i+1, f.Function))
		}
	}
	return out
}
