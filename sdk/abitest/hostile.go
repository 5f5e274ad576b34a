package abitest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Stage is where a hostile guest shows what it is.
type Stage int

// The stages.
const (
	AtLoad     Stage = iota // it must not load
	AtRun                   // it loads, and its run ends as the table says
	AtValidate              // it loads, and its validate does
)

// A HostileGuest is a module that means harm, and the end it must come to.
type HostileGuest struct {
	Name   string // lower_snake; also its plugin's and its step type's name
	Clause string // of ABI.md that it breaks
	Sin    string // what it does, in words
	At     Stage
	// Code is that of the error that it ends with, and Words are part of its
	// message. The code "any" stands for every one but internal, "either" for
	// those and success; no code says that the guest does no harm and ends well.
	Code  abi.Code
	Words string
	// Output is the JSON that a guest without Code has as its output; empty for
	// any.
	Output string
	// Module makes the module, which may have megabytes.
	Module func() []byte
}

// Codes for what engines see at different times, or do not mind.
const (
	anyCode   abi.Code = "any"
	eitherEnd abi.Code = "either"
)

// Hostile returns every hostile guest of the kit.
func Hostile() []HostileGuest {
	guests := make([]HostileGuest, 0, len(hostile))
	for _, g := range hostile {
		guests = append(guests, HostileGuest{
			Name: g.name, Clause: g.clause, Sin: g.sin, At: g.at, Code: g.code, Words: g.words, Output: g.output,
			Module: func() []byte { return module("hostile/" + g.name) },
		})
	}
	return append(guests, made()...)
}

// hostileCompute bounds the time of a hostile guest; it is long enough for what
// the harmless ones of them do.
const hostileCompute = 300 * time.Millisecond

// hostileLoad bounds the load of those that do not end by themselves.
const hostileLoad = 2 * time.Second

// hostileGrace is how long after its time limit a guest may end. On a busy machine
// it is long; a guest that takes longer cannot be interrupted.
const hostileGrace = 30 * time.Second

// CheckHostile has a host meet every hostile guest.
func CheckHostile(ctx context.Context, host Host) Report {
	var report Report
	for _, g := range Hostile() {
		report = append(report, sit(ctx, host, nil, nil, check{g.Clause, g.Name + ": " + g.Sin, func(j *judge) { j.meet(g) }}))
	}
	return report
}

// TestHostile has a host meet every hostile guest, one subtest each. T is
// *testing.T.
func TestHostile[T Test[T]](t T, host Host) {
	t.Helper()
	tell(t, CheckHostile(t.Context(), host))
}

// meet loads a hostile guest and, if it shall, runs it.
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
		j.fatalf("it does not load: %s", said(err))
	}
	if g.At == AtValidate {
		ctx, cancel := context.WithTimeout(ctx, hostileLoad)
		defer cancel()
		_, err := guest.Validate(ctx, []byte(`{"type":"`+g.Name+`","fields":{}}`))
		j.ends(g, "validate", err)
		return
	}
	// Twice: what the first run left behind must not be in the second.
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

// inTime notes a fault if more than hostileGrace passes after a time limit until the
// function that it returns is called.
func (j *judge) inTime(what string, limit time.Duration) func() {
	began := time.Now()
	return func() {
		if took := time.Since(began); took > limit+hostileGrace {
			j.faultf("%s ended after %s, its time limit is %s", what, took.Round(time.Second), limit)
		}
	}
}

// bulk reports whether the guest is one of those that move memory.
func (g HostileGuest) bulk() bool { return strings.HasPrefix(g.Name, "bulk_") }

// hostileRun is the attempt that a hostile guest gets: little memory and time,
// and a host that answers everything.
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
		inv.Compute = 2 * time.Minute // they come to an end by themselves, some engines take long
	}
	return inv
}

// ends compares the end of a hostile guest with what it must be.
func (j *judge) ends(g HostileGuest, where string, err error) {
	if g.Code == "" {
		if err != nil {
			j.faultf("%s ended with %s, want success", where, said(err))
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
	case g.Code != anyCode && g.Code != eitherEnd && e.Code != g.Code, e.Code == abi.Internal, !slices.Contains(abi.Codes(), e.Code), !strings.Contains(e.Message, g.Words):
		j.faultf("%s ended with %s, want code %s and the words %q", where, said(err), g.Code, g.Words)
	}
	j.clean(err)
}

// clean looks for what an error must not show: what is inside the host.
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
		j.faultf("the error is one of the kit's own")
	}
}
