package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// kind is the trigger kind "order": it fires for every order of the shop, from
// the first one on, also for those that came while nothing ran.
//
//	"trigger": {"type": "order", "minimumCents": 5000}
type kind struct{ shop *shop }

// options are those of one trigger. The engine has its own besides, such as
// filter and debounceMs, which every kind gets for nothing.
type options struct {
	// MinimumCents leaves out smaller orders. Default 0, none.
	MinimumCents int `json:"minimumCents,omitempty"`
}

// Describe names the kind for definitions and the schema.
func (kind) Describe() triggers.Description {
	return triggers.Description{Name: "order", Fires: "for every order of the shop"}
}

// Check is called when a definition is saved, so that what is wrong with the
// trigger is said there and then.
func (kind) Check(t sentinels.Trigger) error {
	_, err := readOptions(t)
	return err
}

func readOptions(t sentinels.Trigger) (options, error) {
	var o options
	if err := triggers.ReadOptions(t, &o); err != nil {
		return o, err
	}
	if o.MinimumCents < 0 {
		return o, fmt.Errorf(`trigger "order": minimumCents is %d, less than nothing`, o.MinimumCents)
	}
	return o, nil
}

// Arm prepares a trigger. The state is what the newest fire left: the number of
// the order that it was for.
func (k kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	o, err := readOptions(t)
	if err != nil {
		return nil, err
	}
	a := &armed{shop: k.shop, options: o, sentinel: env.Sentinel}
	if env.State != nil {
		err = json.Unmarshal(env.State, &a.last)
	}
	return a, err
}

// armed is one trigger of one sentinel. Only the goroutine of Run uses it.
type armed struct {
	shop     *shop
	options  options
	sentinel sentinels.ID
	last     int // number of the order that was seen last
}

// Run fires for one order after another until ctx ends. The fire's state is
// kept in the transaction that starts the run, so an order starts one run, not
// none and not two, wherever the process dies.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
	for {
		o, err := a.shop.next(ctx, a.last)
		if err != nil {
			return nil // ctx has ended
		}
		if o.Cents >= a.options.MinimumCents {
			if _, err := fire(ctx, a.fire(o)); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("fire for order %d: %w", o.Number, err) // the engine says so and runs it again
			}
		}
		a.last = o.Number
	}
}

// fire is the occasion that an order is.
func (a *armed) fire(o order) triggers.Firing {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // numbers and a text
	}
	number := strconv.Itoa(o.Number)
	return triggers.Firing{
		Key: number, At: time.Now(), State: json.RawMessage(number),
		Event: &sentinels.Event{
			ID: string(a.sentinel) + "-order-" + number, Name: "order:placed", Source: "/shop", Time: time.Now(), Data: data,
		},
	}
}

var (
	_ triggers.Kind  = kind{}
	_ triggers.Armed = (*armed)(nil)
)
