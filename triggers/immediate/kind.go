package immediate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. There are no options; the zero value works.
type Options struct{}

// Kind is the trigger kind "immediate". It is stateless.
type Kind struct{}

// New returns the trigger kind.
func New(Options) Kind { return Kind{} }

// Describe describes the kind "immediate".
func (Kind) Describe() triggers.Description {
	return triggers.Description{Name: "immediate", Fires: "at once", Options: options{}, Event: "name immediate; data {occasion: create, edit or start; revision: of the definition}", Data: []string{"occasion", "revision"}}
}

// On is an occasion on which the trigger fires.
type On string

// The occasions. With each of them a new trigger fires once, as [OnCreate].
const (
	OnCreate On = "create" // once, when the trigger is new
	OnEdit   On = "edit"   // at each new revision of the definition
	OnStart  On = "start"  // at each start of the host
)

// options are the trigger's own options, clause T3.
type options struct {
	// On is what the trigger fires on. Default [OnCreate].
	On On `json:"on,omitempty" doc:"create: once, when the trigger is new. edit: also for each new revision of the definition. start: also at each start of the host" default:"create" enum:"create,edit,start"`
}

func read(t sentinels.Trigger) (options, error) {
	var o options
	if err := triggers.ReadOptions(t, &o); err != nil {
		return o, err
	}
	switch o.On {
	case "":
		o.On = OnCreate
	case OnCreate, OnEdit, OnStart:
	default:
		return o, fmt.Errorf(`trigger "immediate": invalid on %q: want create, edit or start`, o.On)
	}
	return o, nil
}

// Check reports problems of the options of t.
func (Kind) Check(t sentinels.Trigger) error {
	_, err := read(t)
	return err
}

// Arm prepares a trigger. It decides here whether there is an occasion to fire.
func (Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	o, err := read(t)
	if err != nil {
		return nil, err
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	// Without a state the trigger has never fired, even if it was armed before: the
	// host may have crashed between arming and firing.
	var newest *state
	if len(env.State) > 0 {
		if err := json.Unmarshal(env.State, &newest); err != nil {
			return nil, fmt.Errorf("read state of immediate trigger: %w", err)
		}
	}
	return &armed{env: env, occasion: occasion(o.On, env, newest), at: env.Now().UTC()}, nil
}

// occasion returns what to fire for, "" for nothing. There is at most one: a
// start of the host that finds a new revision is an edit or a start, depending
// on the option.
func occasion(on On, env triggers.Env, newest *state) On {
	switch {
	case newest == nil:
		return OnCreate
	case on == OnEdit && newest.Revision != env.Revision:
		return OnEdit
	case on == OnStart && env.Starting:
		return OnStart
	}
	return ""
}

var _ triggers.Kind = Kind{}
