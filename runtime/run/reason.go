package run

// Reasons of runs that reached a limit: the name of the limit as a definition has it.
const (
	ReasonMaxIterations = "maxIterations"
	ReasonTimeout       = "timeoutMs"
	ReasonTokens        = "budget.tokens"
	ReasonCost          = "budget.costUsd"
	ReasonCalls         = "budget.calls"
	ReasonMemory        = "maxMemoryMb"
)

// ReasonNoPlugin begins the reason of a run that is paused because no plugin provides a step type of
// its definition. It is resumed when one does.
const ReasonNoPlugin = "waits for a plugin: "

// TimedOut returns every reason of a run that ended as timed_out, or paused at a limit. There
// are no others.
func TimedOut() []string {
	return []string{ReasonMaxIterations, ReasonTimeout, ReasonTokens, ReasonCost, ReasonCalls}
}

// Failed returns every reason of a run that ended as failed; a run that failed for another
// cause has none.
func Failed() []string { return []string{ReasonMemory} }
