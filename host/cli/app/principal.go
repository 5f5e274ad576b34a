package app

import (
	"cmp"
	"context"

	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// envRun is set for processes that a step starts.
const envRun = "SENTINEL_RUN"

// Principal returns who this invocation acts as. A process that a step started is an
// agent, so that a model with a shell does not decide what waits for a person. A process
// that has the store finds that out by itself; here it is for the name of the agent, and
// for a store that this process opens.
func (a *App) Principal() (principal.Principal, error) {
	as := a.Flags.As
	if run := a.Env.Getenv(envRun); run != "" && principal.CheckName(run) == nil {
		as = string(principal.Agent) + ":" + cmp.Or(as, run)
	}
	p, err := principal.Principal{}.Narrow(as)
	if err != nil {
		return p, NewUsageError("--as: "+abi.As(err).Message, "")
	}
	self := peer.Self()
	p.Process = principal.Process{PID: self.PID, Program: self.Program}
	if self.Standing == peer.Below {
		p = p.Below(principal.BelowStep)
	}
	return p, nil
}

// OnlyPerson refuses a verb in a process that a step started, or that acts as an agent. ctx
// is that of the verb.
func (a *App) OnlyPerson(ctx context.Context, what string) error {
	p := principal.From(ctx)
	if p.Kind == "" || p.Kind == principal.Person {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: what + ": only a person does this, and this process acts as " + p.String(),
		Hint: "use it outside of steps and without --as agent:NAME"}
}
