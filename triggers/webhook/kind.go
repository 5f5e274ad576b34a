package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are no options; the zero value works.
type Options struct{}

// Kind is the trigger kind "webhook". It is stateless.
type Kind struct{}

// New returns the trigger kind.
func New(Options) Kind { return Kind{} }

// Describe describes the kind "webhook".
func (Kind) Describe() triggers.Description {
	return triggers.Description{Name: "webhook", Fires: "on HTTP requests to /v1/hooks/SENTINEL (with several /v1/hooks/SENTINEL/TRIGGER, a name or index)", Options: options{}, Event: "name: that of the option event; data: a JSON body as it is, a form as an object (its JSON, if payload is the only field), other text as {text, contentType}, other bytes as {base64, contentType}, without a body the query as an object"}
}

// Check reports problems of the options of t.
func (Kind) Check(t sentinels.Trigger) error {
	_, err := readOptions(t)
	return err
}

// Arm prepares a trigger. It does not look up the secret, so that a secret that is
// set later works without arming again.
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
// Immutable, so Receive is safe for concurrent use.
type armed struct {
	opt options
	env triggers.Env
}

// Run waits until ctx ends; firings come from Receive. A webhook without its
// secret refuses every request, so Run returns an error, which the runtime shows,
// and checks again when it is called again.
func (a *armed) Run(ctx context.Context, _ triggers.FireFunc) error {
	if _, err := a.secret(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Ready returns an error while the secret is not set: every request is refused until then.
func (a *armed) Ready() error {
	_, err := a.secret()
	return err
}

var (
	_ triggers.Checker  = (*armed)(nil)
	_ triggers.Kind     = Kind{}
	_ triggers.Armed    = (*armed)(nil)
	_ triggers.Receiver = (*armed)(nil)
)
