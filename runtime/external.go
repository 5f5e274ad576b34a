package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The outside world, see package external.
type (
	Commands             = external.Commands
	CommandInfo          = external.CommandInfo
	Checks               = external.Checks
	CommandCall          = external.CommandCall
	Models               = external.Models
	ModelQuote           = external.ModelQuote
	Executions           = external.Executions
	InterruptedExecution = external.InterruptedExecution
	FileWatch            = external.FileWatch
	Contexts             = external.Contexts
	ContextRequest       = external.ContextRequest
	HTTP                 = external.HTTP
	Folders              = external.Folders
	PluginCall           = external.PluginCall
)

// TypeEntry returns the entry of a bound, such as [StartOptions].Within, that lets steps of a type
// use the hosts, secrets and folders which their plugin was granted.
func TypeEntry(t sentinels.StepType) string { return external.TypeEntry(t) }
