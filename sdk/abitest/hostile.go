package abitest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Stage is the stage at which a hostile guest fails.
type Stage int

// The stages.
const (
	AtLoad     Stage = iota // it must not load
	AtRun                   // it loads, and its run must end as specified
	AtValidate              // it loads, and its validate must end as specified
)

// A HostileGuest is a module that attacks its host, and the result that it must have.
type HostileGuest struct {
	Name     string // lower_snake; also the name of its plugin and step type
	Clause   string // of ABI.md that it violates
	Behavior string // what it does
	At       Stage
	// Code is the code of the error with which it must end, and Words are a part of
	// the message. The code "any" allows every code except internal, "either" also
	// allows success. Without a code, the guest must succeed.
	Code  abi.Code
	Words string
	// Output is the JSON output of a guest without Code; empty allows any.
	Output string
	// Module returns the module, which may have megabytes.
	Module func() []byte
}

// Codes for modules that engines detect at different times, or accept.
const (
	anyCode   abi.Code = "any"
	eitherEnd abi.Code = "either"
)

// Hostile returns every hostile guest of the kit.
func Hostile() []HostileGuest {
	guests := make([]HostileGuest, 0, len(hostile))
	for _, g := range hostile {
		guests = append(guests, HostileGuest{
			Name: g.name, Clause: g.clause, Behavior: g.behavior, At: g.at, Code: g.code, Words: g.words, Output: g.output,
			Module: func() []byte { return module("hostile/" + g.name) },
		})
	}
	return append(guests, made()...)
}

// hostileCompute limits the time of a hostile guest. It is long enough for the harmless
// ones.
const hostileCompute = 300 * time.Millisecond

// hostileLoad limits the time of loading guests that do not end.
const hostileLoad = 2 * time.Second

// hostileGrace is the time after its limit in which a guest must end. It is long for busy
// machines; a guest that needs more cannot be interrupted.
const hostileGrace = 30 * time.Second

// CheckHostile runs every hostile guest on a host.
func CheckHostile(ctx context.Context, host Host) Report {
	var report Report
	for _, g := range Hostile() {
		report = append(report, runCheck(ctx, host, nil, nil, check{g.Clause, g.Name + ": " + g.Behavior, func(j *judge) { j.meet(g) }}))
	}
	return report
}

// TestHostile runs every hostile guest on a host, with one subtest for each. T is
// *testing.T.
func TestHostile[T Test[T]](t T, host Host) {
	t.Helper()
	reportTo(t, CheckHostile(t.Context(), host))
}

// meet loads a hostile guest and executes the stage at which it must fail.
func (j *judge) meet(g HostileGuest) {
	ctx := j.ctx
	if g.At == AtLoad && g.Code == abi.Timeout {
		limit := hostileLoad
		if g.bulk() {
			limit *= 5 // it is also compiled in that time
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		defer j.inTime("load", limit)()
	}
	guest, err := j.host.Load(ctx, g.Module())
	if err == nil {
		defer func() {
			if err := guest.Close(); err != nil {
				j.faultf("close: %v", err)
			}
		}()
	}
	if g.At == AtLoad {
		j.ends(g, "load", err)
		return
	}
	if err != nil {
		j.fatalf("it does not load: %s", errorText(err))
	}
	if g.At == AtValidate {
		ctx, cancel := context.WithTimeout(ctx, hostileLoad)
		defer cancel()
		_, err := guest.Validate(ctx, []byte(`{"type":"`+g.Name+`","fields":{}}`))
		j.ends(g, "validate", err)
		return
	}
	// Twice, because the second run must not see changes of the first.
	for range 2 {
		inv := j.hostileRun(g)
		ended := j.inTime("run", inv.Compute)
		result, err := guest.Run(ctx, inv)
		ended()
		j.ends(g, "run", err)
		if err == nil && g.Code == "" && g.Output != "" {
			j.want("output", must(g.Output), j.read("output", result.Output), nil)
		}
	}
}

// inTime adds a fault if the function that it returns is called more than hostileGrace
// after a time limit.
func (j *judge) inTime(what string, limit time.Duration) func() {
	began := time.Now()
	return func() {
		if took := time.Since(began); took > limit+hostileGrace {
			j.faultf("%s ended after %s, its time limit is %s", what, took.Round(time.Second), limit)
		}
	}
}

// bulk reports whether the guest is one of those that copy memory.
func (g HostileGuest) bulk() bool { return strings.HasPrefix(g.Name, "bulk_") }

// hostileRun returns the attempt of a hostile guest: with little memory and time, and a
// host that answers all calls.
func (j *judge) hostileRun(g HostileGuest) Invocation {
	inv := Invocation{
		Input: step{typ: g.Name, fields: map[string]any{}}.input(), Seed: 1, Clock: epoch, Compute: hostileCompute, MemoryBytes: 4 << 20,
		Call: func(context.Context, string, []byte) (Reply, error) { return Reply{Body: []byte(`{"ok":{}}`)}, nil },
	}
	if g.bulk() {
		inv.MemoryBytes = bulkMemory
	}
	switch g.Name {
	case "flood_log", "flood_kernel_log", "recursion", "recursion_indirect", "blocks_small":
		inv.Compute = 2 * time.Minute // they end by themselves, which takes long in some engines
	}
	return inv
}

// ends compares the result of a hostile guest with the specified one.
func (j *judge) ends(g HostileGuest, where string, err error) {
	if g.Code == "" {
		if err != nil {
			j.faultf("%s ended with %s, want success", where, errorText(err))
		}
		return
	}
	e := abi.As(err)
	switch {
	case err == nil && g.Code == eitherEnd:
		return
	case err == nil:
		j.faultf("%s went well, want code %s", where, g.Code)
		return
	case e == nil:
		j.faultf("%s ended with an error without a code: %v", where, err)
		return
	case g.Code != anyCode && g.Code != eitherEnd && e.Code != g.Code, e.Code == abi.Internal, !abi.IsCode(string(e.Code)), !strings.Contains(e.Message, g.Words):
		j.faultf("%s ended with %s, want code %s and the words %q", where, errorText(err), g.Code, g.Words)
	}
	j.clean(err)
}

// clean checks that an error has no internals of the host.
func (j *judge) clean(err error) {
	for _, leak := range []string{"goroutine ", ".go:", "recovered by", "wasm stack trace", "0xc0", "\n"} {
		if strings.Contains(err.Error(), leak) {
			j.faultf("the error shows %q: %q", leak, brief(err.Error(), 500))
		}
	}
	if text := err.Error(); text == "" || len(text) > 20<<10 {
		j.faultf("the error has %d bytes", len(text))
	}
	if errors.Is(err, errParked) {
		j.faultf("the error is an error of the kit")
	}
}
