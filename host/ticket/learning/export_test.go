package learning

// Exceeds is exceeds for tests.
var Exceeds = exceeds

// Judge is judge for tests.
func (t *Trial) Judge() int { return t.judge() }

// Limits for tests.
const (
	MaxSeen     = maxSeen
	MaxProposed = maxProposed
)

// A Prompt is a prompt for tests.
type Prompt struct{ prompt }

// Data adds data without a limit.
func (p *Prompt) Data(source, text string) {
	p.room = MaxBytes
	p.data(source, text, MaxBytes)
}
