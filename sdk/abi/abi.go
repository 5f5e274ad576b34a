// Package abi holds the constants that a step plugin and its host share: the
// names of exports and host functions, the error codes and the schema keywords.
//
// It imports no other package, so that guests stay small. The encoding of requests and
// their limits are clauses of ../ABI.md.
package abi

// Version is the version of the plugin ABI. It is in every manifest and every run
// input; a host refuses a manifest with another version.
const Version = 1

// Namespace is the import module of every host function.
const Namespace = "extism:host/user"

// The functions that a plugin exports. Each has no parameters and returns an i32
// status, 0 for success, as in the Extism PDKs.
const (
	ExportDescribe = "describe"
	ExportRun      = "run"
	ExportValidate = "validate" // optional
)

// The host functions. Each takes and returns one i64 handle of a JSON text in
// kernel memory. The answer is {"ok": value} or {"error": error object}.
const (
	FuncCommand    = "sentinel_command"
	FuncLLM        = "sentinel_llm"
	FuncWatch      = "sentinel_watch"
	FuncEval       = "sentinel_eval"
	FuncVar        = "sentinel_var"
	FuncBlock      = "sentinel_block"
	FuncSpawn      = "sentinel_spawn"
	FuncEmit       = "sentinel_emit"
	FuncWait       = "sentinel_wait"
	FuncCheckpoint = "sentinel_checkpoint"
	FuncHTTP       = "sentinel_http"
	FuncLog        = "sentinel_log"
	FuncNow        = "sentinel_now"
	FuncFile       = "sentinel_file"
)

// A handle of a value is @, one of these letters, and the address of the block that has it, see
// clause A3.4.
const (
	HandleString = 's'
	HandleList   = 'l'
	HandleObject = 'o'
)

// Funcs returns the names of all host functions, in the order of ABI.md.
func Funcs() []string {
	return []string{
		FuncCommand, FuncLLM, FuncWatch, FuncEval, FuncVar, FuncBlock, FuncSpawn,
		FuncEmit, FuncWait, FuncCheckpoint, FuncHTTP, FuncLog, FuncNow, FuncFile,
	}
}

// Use is a kind of permission in a manifest's permissions. The functions without a Use (eval,
// var, block, wait, checkpoint, log, now) access nothing outside the run and need no
// grant.
type Use string

// The uses that a manifest may request. Each except secret and provide is required for one
// host function. Clause A2.4 describes the meaning of a missing list of names.
const (
	UseCommand Use = "command" // names: command names, "code/*" or "*"
	UseLLM     Use = "llm"     // names: models, none for any
	UseWatch   Use = "watch"   // no names
	UseSpawn   Use = "spawn"   // names: ids of sentinels, none for only the definitions in the step's own fields
	UseEmit    Use = "emit"    // names: patterns of events, none for any
	UseHTTP    Use = "http"    // names: hosts
	UseFolder  Use = "folder"  // names: folders, named by the plugin, "data" to read, "data:rw" to write too
	UseSecret  Use = "secret"  // names: secrets that are inserted in outgoing requests
	UseProvide Use = "provide" // names: roles of its step types
)

// Uses returns all uses, in the order in which they are displayed.
func Uses() []Use {
	return []Use{UseCommand, UseLLM, UseWatch, UseSpawn, UseEmit, UseHTTP, UseFolder, UseSecret, UseProvide}
}

// UseOf returns the permission that a host function requires; ok is false if it
// requires none.
func UseOf(function string) (use Use, ok bool) {
	switch function {
	case FuncCommand:
		return UseCommand, true
	case FuncLLM:
		return UseLLM, true
	case FuncWatch:
		return UseWatch, true
	case FuncSpawn:
		return UseSpawn, true
	case FuncEmit:
		return UseEmit, true
	case FuncHTTP:
		return UseHTTP, true
	case FuncFile:
		return UseFolder, true
	}
	return "", false
}

// Keyword is the JSON Schema keyword with which a manifest marks a field that is not
// plain data. Its value is one of the Mark constants.
const Keyword = "x-sentinel"

// The marks of a step field.
const (
	MarkExpression  = "expression"  // a JavaScript condition: passed as source, evaluated by sentinel_eval
	MarkSteps       = "steps"       // a nested step list, run by sentinel_block
	MarkBranches    = "branches"    // a list of nested step lists
	MarkShell       = "shell"       // a shell line: references become environment variables
	MarkInterpreter = "interpreter" // the program that reads the shell lines of the step; the default is that of the definition
	MarkRaw         = "raw"         // passed as written, references are not resolved
	MarkDefinition  = "definition"  // an inline definition, or {"$ref": id}
	MarkTools       = "tools"       // the step's allow-list of commands for its model
	MarkParams      = "params"      // parameters of the command in the field "command": resolved with the schema of that command
	MarkValues      = "values"      // values of variables by name: each is a template, or {"expr": JavaScript}, which is passed as written
	MarkVariable    = "variable"    // the name of a variable that the step sets for its nested steps; without the field, the default of its schema
)
