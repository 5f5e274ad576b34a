package app

import (
	"cmp"
	"context"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// envRun is set for processes that a step starts.
const envRun = "SENTINEL_RUN"

// Principal returns who this invocation acts as. A process that a step started is an
// agent, so that a model with a shell does not decide what waits for a person. This holds
// those who follow the rules: who has the rights of this user can do all the user can.
func (a *App) Principal() (principal.Principal, error) {
	as := a.Flags.As
	if run := a.Env.Getenv(envRun); run != "" && principal.CheckName(run) == nil {
		as = string(principal.Agent) + ":" + cmp.Or(as, run)
	}
	p, err := principal.Principal{}.Narrow(as)
	if err != nil {
		return p, NewUsageError("--as: "+abi.As(err).Message, "")
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
