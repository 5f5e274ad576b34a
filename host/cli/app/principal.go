package app

import (
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// envRun is set for processes that a step starts.
const envRun = "SENTINEL_RUN"

// Principal returns who this invocation acts as. A process that a step started is an
// agent, so that a model with a shell does not decide what waits for a person. This holds
// those who follow the rules: who has the rights of this user can do all the user can.
func (a *App) Principal() (principal.Principal, error) {
	p := principal.Principal{}
	if run := a.Env.Getenv(envRun); run != "" && principal.CheckName(run) == nil {
		p = principal.Principal{Kind: principal.Agent, Name: run}
		if a.Flags.As == "" {
			return p, nil
		}
		if err := principal.CheckName(a.Flags.As); err != nil {
			return p, NewUsageError("--as: "+err.Error(), "")
		}
		p.Name = a.Flags.As
		return p, nil
	}
	p, err := p.Narrow(a.Flags.As)
	if err != nil {
		return p, NewUsageError("--as: "+abi.As(err).Message, "")
	}
	return p, nil
}

// OnlyPerson refuses a verb in a process that a step started, or that acts as an agent.
func (a *App) OnlyPerson(what string) error {
	p, err := a.Principal()
	if err != nil || p.Kind == "" || p.Kind == principal.Person {
		return err
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: what + ": only a person does this, and this process acts as " + p.String(),
		Hint: "use it outside of steps and without --as agent:NAME"}
}
