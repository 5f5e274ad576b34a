package run

// Reasons of runs that ended as timed_out, or paused at a limit: the name of the limit
// as a definition has it.
const (
	ReasonMaxIterations = "maxIterations"
	ReasonTimeout       = "timeoutMs"
	ReasonTokens        = "budget.tokens"
	ReasonCost          = "budget.costUsd"
	ReasonCalls         = "budget.calls"
	ReasonMemory        = "maxMemoryMb"
)

// Reasons returns every reason of a run that ended as timed_out. There are no others.
func Reasons() []string {
	return []string{ReasonMaxIterations, ReasonTimeout, ReasonTokens, ReasonCost, ReasonCalls, ReasonMemory}
}
