package sentinels

import "fmt"

// StepAt returns the step at an address: "2", "3.then.0", "1.branches.0.2".
func (d *Definition) StepAt(address string) (*Step, error) {
	return nil, fmt.Errorf("step %q: not found", address)
}

// InsertStep returns a copy of d with step put before the one at address; the
// address one past the end of its list appends.
func (d *Definition) InsertStep(address string, step Step) (*Definition, error) { return nil, nil }

// ReplaceStep returns a copy of d with step in place of the one at address.
func (d *Definition) ReplaceStep(address string, step Step) (*Definition, error) { return nil, nil }

// RemoveStep returns a copy of d without the step at address.
func (d *Definition) RemoveStep(address string) (*Definition, error) { return nil, nil }
