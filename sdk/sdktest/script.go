package sdktest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Script answers the host calls of one step from fakes. Log lines and checkpoints need
// none, and the time is [Base] where it is not faked.
//
// # Concurrency
//
// A Script serves one step at a time.
type Script struct {
	fakes    []Fake
	used     []bool
	ordered  bool
	strict   bool                         // a call without an answer ends the step
	folders  map[string]map[string]string // of [Host.Folder]
	next     int                          // of ordered fakes
	problems []string                     // calls that an ordered script does not have
	stopped  error                        // a strict script had no answer
}

// Base is when each step starts, on the guest's clock.
var Base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Answers returns a script in which each fake answers the first call that it matches.
// A call without an answer is denied.
func Answers(fakes []Fake) *Script {
	s := &Script{}
	s.add(fakes...)
	return s
}

// InOrder returns a script that expects exactly these calls, in this order.
func InOrder(fakes []Fake) *Script {
	s := Answers(fakes)
	s.ordered = true
	return s
}

func (s *Script) add(fakes ...Fake) {
	s.fakes = append(s.fakes, fakes...)
	s.used = append(s.used, make([]bool, len(fakes))...)
}

// answer returns the answer to a call; faked is false for one that is denied.
func (s *Script) answer(function string, request json.RawMessage) (body json.RawMessage, faked bool, err error) {
	if s.ordered {
		if s.next < len(s.fakes) && s.fakes[s.next].Function == function {
			f := s.fakes[s.next]
			s.next++
			if !f.matches(function, request) {
				s.problems = append(s.problems, fmt.Sprintf("call %d: request: %s", s.next, mismatch(f.Request, request)))
			}
			return f.body(), true, nil
		}
	} else {
		for i, f := range s.fakes {
			if !s.used[i] && f.matches(function, request) {
				s.used[i] = true
				return f.body(), true, nil
			}
		}
	}
	switch {
	case function == abi.FuncLog || function == abi.FuncCheckpoint:
		return json.RawMessage(`{"ok":{}}`), true, nil
	case function == abi.FuncNow:
		return fmt.Appendf(nil, `{"ok":{"unixMs":%d,"iso":%q}}`, Base.UnixMilli(), Base.Format(time.RFC3339)), true, nil
	case function == abi.FuncFile && s.folders != nil:
		return json.RawMessage(s.file(request)), true, nil
	case s.strict:
		s.stopped = fmt.Errorf("%s: no scripted answer left for %s", function, request)
		return nil, false, s.stopped
	case s.ordered:
		want := "no further call"
		if s.next < len(s.fakes) {
			want = s.fakes[s.next].Function
		}
		s.problems = append(s.problems, fmt.Sprintf("call %d: want %s, got %s %s", s.next+1, want, function, request))
	}
	denied := Fake{Error: &abi.Error{Code: abi.Denied, Message: function + ": no fake answer for this call", Hint: "add one to the fakes"}}
	return denied.body(), false, nil
}

// left describes the fakes that were not used.
func (s *Script) left() []string {
	var out []string
	for i, f := range s.fakes {
		if s.ordered && i >= s.next || !s.ordered && !s.used[i] {
			out = append(out, fmt.Sprintf("call %d, %s, was not made", i+1, f.Function))
		}
	}
	return out
}
