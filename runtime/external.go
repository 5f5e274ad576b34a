package runtime

import "github.com/sentinel-runtime/sentinel/runtime/external"

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
