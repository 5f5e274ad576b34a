package step

import (
	"fmt"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestLimitTable compares the limits of the engine with clauses A8.1 and A8.7.
func TestLimitTable(t *testing.T) {
	l := run.Limits{}.WithDefaults()
	abidoc.Want(t, "A8.1", map[string]string{
		"one request or answer":                                           abidoc.Bytes(maxMessage) + ", a value of 16 MiB and what is around it; 256 KiB for sentinel_file and sentinel_http; larger answers are cut where a command can page, and refused elsewhere",
		"host calls of one attempt since its last checkpoint":             abidoc.Count(l.Calls),
		"arrays and objects within each other, in a request":              abidoc.Count(requestLimits.Depth),
		"requests and results of those calls":                             abidoc.Bytes(int(l.CallBytes)) + " (callBytes); the call that passes it ends the attempt with limit",
		"requests of sentinel_log of one attempt":                         abidoc.Count(l.LogLines) + " and " + abidoc.Bytes(int(l.LogBytes)) + " together; the others are answered and dropped, and the log says how many",
		"requests of sentinel_var and sentinel_checkpoint of one attempt": abidoc.Bytes(int(l.StoredBytes)),
		"output of run": abidoc.Bytes(maxMessage),
		"linear memory": abidoc.Bytes(int(l.GuestMemory)) + ", the limit guestMemory; plugin allow --memory lowers it or raises it, to 1 GiB at most, within the run's maxMemoryMb",
		"child runs of a run that execute at once": abidoc.Count(l.Children) + "; further ones wait, at most 10,000; when a child ends, the active runs that it started count as children of the run above it",
		"names and data of the events that one iteration emits, by sentinel_emit and by commands": abidoc.Bytes(int(l.EventBytes)) +
			" (eventBytes), then the error limit; events of a repeated attempt count again, a resumed run counts on from its journal",
		"nesting of child runs":           abidoc.Count(l.Depth),
		"step executions of an iteration": abidoc.Count(l.Steps),
		"runs in a chain of events":       abidoc.Count(l.Hops),
		"time of run": fmt.Sprintf("the smaller of the step's timeoutMs and the time granted to the plugin; "+
			"if neither is set, the run's maxStepTimeoutMs, else %d minutes, both without waits and inner steps", l.StepTimeout/time.Minute),
	})
	abidoc.Want(t, "A8.7", map[string]string{
		"sentinel_block: outputs of nested steps in one answer": abidoc.Bytes(maxMessage),
	})
}
