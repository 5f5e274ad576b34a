package sentinel

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// # What a person holds back
//
// A person who pauses or stops a run, or who is asked whether an interrupted call or a quarantined step executes again,
// decides whether its work goes on. Bounded callers have several verbs that would decide it too: a resume, a retry or a
// fork of the run, of one above it or below it, and a stop, which takes away the pause and the question. The rest of
// a run is also what its forks execute, and what the run itself executes if it is tried again: a retry or fork of any of
// them waits for the person. A fork that is active already is another run, which the pause does not stop.

// notHeldBack returns the error of a call that goes on with the work of a run, or ends it, if a person holds back that
// run or one below it. With again, the call executes the work of the run in another one: then also runs count that have
// ended, those above it, and active ones that have this work too, as forks.
func (f family) notHeldBack(call *command.Call, info runtime.RunInfo, again bool) error {
	if !call.Bounded() {
		return nil
	}
	held := func(r runtime.RunInfo) error {
		if !again && r.Status.Final() {
			return nil
		}
		return heldBack(call, r, again)
	}
	if again {
		if err := f.eachAbove(info, held); err != nil {
			return err
		}
	}
	if err := held(info); err != nil {
		return err
	}
	if err := f.eachBelow(info, runtime.RunFilter{}, held); err != nil || !again {
		return err
	}
	return f.eachFork(info, func(r runtime.RunInfo) error { return f.notHeldBack(call, r, false) })
}

// eachFork calls do with the active runs that, by retries and forks, come from the same run as info, or are that one, until
// there is an error.
func (f family) eachFork(info runtime.RunInfo, do func(runtime.RunInfo) error) error {
	active, err := f.rt.Runs(runtime.RunFilter{Sentinel: info.Sentinel, Statuses: runtime.Unfinished()})
	if err != nil || len(active) == 0 {
		return err
	}
	first, err := f.origin(info)
	if err != nil {
		return err
	}
	for _, r := range active {
		from, err := f.origin(r)
		if err == nil && from == first && r.ID != info.ID {
			err = do(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// origin returns the run that a run comes from by retries and forks, itself if it is none of these. Retention may have removed it.
func (f family) origin(info runtime.RunInfo) (sentinels.RunID, error) {
	for info.RetryOf != "" {
		of, err := f.rt.Status(info.RetryOf)
		if abi.CodeOf(err) == abi.NotFound {
			return info.RetryOf, nil
		}
		if err != nil {
			return "", err
		}
		info = of
	}
	return info.ID, nil
}

// eachAbove calls do with the runs above a run, the nearest first, until there is an error.
func (f family) eachAbove(info runtime.RunInfo, do func(runtime.RunInfo) error) error {
	for id := info.Parent; id != ""; {
		above, err := f.rt.Status(id)
		if abi.CodeOf(err) == abi.NotFound { // removed by retention
			return nil
		}
		if err == nil {
			err = do(above)
		}
		if err != nil {
			return err
		}
		id = above.Parent
	}
	return nil
}

// eachBelow calls do with the runs below a run, as far as they match, until there is an error.
func (f family) eachBelow(info runtime.RunInfo, match runtime.RunFilter, do func(runtime.RunInfo) error) error {
	for list := []runtime.RunInfo{info}; len(list) > 0; list = list[1:] {
		match.Parent = list[0].ID
		children, err := f.rt.Runs(match)
		if err != nil {
			return err
		}
		for _, r := range children {
			if err := do(r); err != nil {
				return err
			}
		}
		list = append(list, children...)
	}
	return nil
}

// heldBack is notHeldBack for one run.
func heldBack(call *command.Call, r runtime.RunInfo, again bool) error {
	if err := liftsQuarantine(call, r); err != nil || !call.Bounded() {
		return err
	}
	asked := slices.ContainsFunc(r.Decisions, func(q runtime.PendingDecision) bool { return q.Kind == runtime.DecisionDoubt })
	switch {
	case asked || again && r.EndedQuestion != "":
		return personsOnly(decides,
			"%s: a person is asked whether a step of run %s executes again, so only a person goes on with it or ends it", call.Command, r.ID)
	case again && r.EndedPause != "" && !mayResume(call, r.EndedPause):
		return endsPauseOf(call, r.ID, r.EndedPause)
	case again && r.EndedBy != "" && !mayResume(call, r.EndedBy):
		return personsOnly("sentinel/start begins a new run of the newest revision",
			"%s: %s ended run %s, so only a person goes on with its work", call.Command, r.EndedBy, r.ID)
	}
	return endsPauseOf(call, r.ID, r.PausedBy())
}

// personsOnly is the error of a call that is left to persons.
func personsOnly(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// decides is the hint for what a person decides.
const decides = "sentinel inbox lists what waits for a person"

// mayResume reports whether a caller may end a pause: what a person paused, only a person resumes.
func mayResume(call *command.Call, by string) bool {
	return !call.Bounded() || by == string(command.ByAgent) || by == string(command.ByModel)
}

// endsPauseOf returns the error of a call that ends the pause of a run by the user by, "" for no pause.
func endsPauseOf(call *command.Call, id sentinels.RunID, by string) error {
	if by == "" || mayResume(call, by) {
		return nil
	}
	return personsOnly("sentinel resume "+string(id)+", by a person",
		"%s: %s paused run %s, so only a person goes on with its work or ends it", call.Command, by, id)
}

// liftsQuarantine returns the error of a call that would let a quarantined step execute again. What a
// person says of a quarantined run is a decision. A pause, also one of a run above it, hides the
// quarantine in the status but not in what the run asks.
func liftsQuarantine(call *command.Call, info runtime.RunInfo) error {
	asks := slices.ContainsFunc(info.Decisions, func(q runtime.PendingDecision) bool { return q.Kind == runtime.DecisionQuarantine })
	if info.Status != sentinels.StatusQuarantined && !asks || call.By == command.ByUser {
		return nil
	}
	return personsOnly(decides, "%s: run %s is quarantined, and only a person lifts that", call.Command, info.ID)
}
