package tracing

// Open counts the steps that a tracer remembers.
func Open(t *Tracer) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}
