package lock

// StopAt has the writes of a held folder stop with an error after a step, as if
// the process had ended there.
func (h *Held) StopAt(step func(done string) error) { h.step = step }
