package run

import "testing"

// TestMemoryDefaults: by default processes of a run may take half of the machine, variables and
// runs of models 1 GiB; where half of the machine is less, that holds for all of them.
func TestMemoryDefaults(t *testing.T) {
	l := Limits{}.WithDefaults()
	if total := machineMemory(); total > 0 && (l.Memory <= 0 || l.Memory > total/2) {
		t.Errorf("of %d bytes of memory a run may take %d, want half of it at most", total, l.Memory)
	}
	if l.AgentMemory != 1<<30 || l.VariableMemory != 1<<30 {
		t.Errorf("runs of agents may take %d bytes, variables %d; want 1 GiB", l.AgentMemory, l.VariableMemory)
	}
	if l = (Limits{Memory: 5}).WithDefaults(); l.Memory != 5 {
		t.Errorf("a limit of 5 bytes became %d", l.Memory)
	}
}
