package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are none yet; the zero value works.
type Options struct{}

// Kind is the trigger kind "webhook". It is stateless.
type Kind struct{}

// New makes the trigger kind.
func New(Options) Kind { return Kind{} }

// Name is "webhook".
func (Kind) Name() string { return "webhook" }

// Check reports what is wrong with the options of t.
func (Kind) Check(t sentinels.Trigger) error {
	_, err := readOptions(t)
	return err
}

// Arm readies a trigger. Its secret is looked up when it is needed, so that one
// which is set later works without arming again.
func (Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	o, err := readOptions(t)
	if err != nil {
		return nil, err
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Secret == nil {
		env.Secret = func(string) (string, bool) { return "", false }
	}
	if o.Event == "" {
		o.Event, o.eventIsDefault = "webhook:"+string(env.Sentinel), true
	}
	return &armed{opt: o, env: env}, nil
}

// armed is one webhook.
//
// # Concurrency
//
// It never changes, so Receive is safe for concurrent use.
type armed struct {
	opt options
	env triggers.Env
}

// Run waits until ctx ends; what fires comes in through Receive. A webhook whose
// secret is missing refuses every request, so that is an error, shown to people
// and looked at again.
func (a *armed) Run(ctx context.Context, _ triggers.Func) error {
	if _, err := a.secret(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

var (
	_ triggers.Kind     = Kind{}
	_ triggers.Armed    = (*armed)(nil)
	_ triggers.Receiver = (*armed)(nil)
)
