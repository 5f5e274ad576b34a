package triggers

import (
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Set is the kinds of one runtime. There is no global registry, so two runtimes
// in one process may have different kinds.
type Set []Kind

// Kind returns the kind with a name.
func (s Set) Kind(name string) (Kind, bool) {
	for _, k := range s {
		if k.Describe().Name == name {
			return k, true
		}
	}
	return nil, false
}

// Formats returns what the format needs to know of the kinds, in order.
func (s Set) Formats() []sentinels.TriggerKind {
	list := make([]sentinels.TriggerKind, len(s))
	for i, k := range s {
		d := k.Describe()
		list[i] = sentinels.TriggerKind{Name: d.Name, Aliases: d.Aliases, Field: d.Field, Fires: d.Fires, Event: d.Event, Warnings: d.warnings, Options: append(OptionsOf(d.Options), OptionsOf(Common{})...)}
	}
	return list
}

// EventData returns the fields that $event.data of a kind can have, nil if it may be anything.
func (s Set) EventData(name string) []string {
	k, ok := s.Kind(name)
	if !ok {
		return nil
	}
	return k.Describe().Data
}

// Detail says in words what a trigger waits for, "" if its kind says nothing or is
// not in the set.
func (s Set) Detail(t sentinels.Trigger) string {
	k, ok := s.Kind(t.Type)
	if !ok {
		return ""
	}
	return k.Describe().detail(t)
}

// Check reports the problems of a trigger, including its common options.
func (s Set) Check(t sentinels.Trigger) error {
	k, ok := s.Kind(t.Type)
	if !ok {
		return fmt.Errorf("this host has no triggers of type %q", t.Type)
	}
	_, err := ReadCommon(t)
	return errors.Join(err, k.Check(t))
}
