package triggers

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Description is what others need to know of a kind.
type Description struct {
	// Name is the trigger type that definitions use, such as "schedule".
	Name string
	// Aliases are other names that definitions may use for the type. Default none.
	Aliases []string
	// Field is the key of the format that the kind requires. Default none: all keys
	// of its triggers are options.
	Field sentinels.TriggerField
	// Fires says in a few words when a trigger of the kind fires: "at planned times".
	Fires string
	// Options is the zero value of the struct that ReadOptions gets. Its tags describe the
	// options, see [OptionsOf]. Default: the kind has only the common options.
	Options any
	// Event says what $event is in the runs of the kind.
	Event string
	// Data are the fields of $event.data in the runs of the kind, all that it can have.
	// Default nil: the data may be anything.
	Data []string
	// Warnings returns what is valid in a trigger and probably a mistake, such as an option
	// that has no effect beside another one. The trigger has passed Check. Default none.
	Warnings func(t sentinels.Trigger) []string
	// Detail says in words what one trigger waits for, for listings. It must accept
	// any trigger. Default: the value of Field.
	Detail func(t sentinels.Trigger) string
}

// warnings returns the warnings of the kind and of the common options.
func (d Description) warnings(t sentinels.Trigger) (list []string) {
	if c, err := ReadCommon(t); err == nil {
		if c.MaxWaitMs > 0 && c.DebounceMs == 0 {
			list = append(list, "maxWaitMs has no effect without debounceMs")
		}
		if c.Ended(0, time.Now()) != "" { // without runs, only until ends a trigger
			list = append(list, "never fires: until "+c.Until+" is in the past")
		}
	}
	if d.Warnings != nil {
		list = append(list, d.Warnings(t)...)
	}
	return list
}

// detail says in words what one trigger waits for.
func (d Description) detail(t sentinels.Trigger) string {
	switch {
	case d.Detail != nil:
		return d.Detail(t)
	case d.Field == sentinels.TriggerEvent:
		return t.Event
	case d.Field == sentinels.TriggerCron:
		return t.CronExpression
	}
	return ""
}
