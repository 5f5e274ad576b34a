package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Plugin describes the step types of one module.
type Plugin struct {
	Name        string // ^[a-z][a-z0-9_]{0,63}$
	Version     string // chosen by the author
	Steps       []Step
	Permissions []Permission // the permissions that its host functions need

	// Stateless declares that requests and outputs depend only on the input, so that
	// an operator may allow instances to be reused.
	Stateless bool
}

// A Step is one step type.
type Step struct {
	Type    string // lower_snake, unique in the plugin
	Summary string // one sentence, for users

	// Fields is the JSON Schema, of type object, of the step's own fields.
	// Properties may carry the keyword x-sentinel with a mark of package abi.
	// It is a string so that describing a plugin, which happens on every new
	// instance, only needs to copy it.
	Fields string
	// Output is the JSON Schema of the step's output, for users and for checks of
	// references to it: with additionalProperties false, a reference to another field is
	// an error of the definition. Default: not described.
	Output string

	Infer    []string          // a step without a type that has one of these fields or aliases is of this type
	Aliases  map[string]string // accepted field name -> name in Fields
	ReadOnly bool              // changes nothing outside the run
	Provides *Provides         // what the step type is besides; nil for a step type alone

	// Run executes one step and returns its output. See [Context].
	Run func(*Context) (Value, error)
	// Validate, if not nil, returns problems of the fields that the schema cannot
	// express. The fields are as written: a string may have references, and nested
	// steps are counts as in clause A2.3 of ABI.md.
	Validate func(fields Value) []Problem
}

// A Permission is one permission with its reason, which the operator reads.
type Permission struct {
	Use    abi.Use
	Names  []string // commands or hosts; patterns such as "code/*" and "*"
	Reason string
}

// The uses of a [Permission].
const (
	UseCommand = abi.UseCommand
	UseLLM     = abi.UseLLM
	UseWatch   = abi.UseWatch
	UseSpawn   = abi.UseSpawn
	UseEmit    = abi.UseEmit
	UseHTTP    = abi.UseHTTP
	UseFolder  = abi.UseFolder
	UseSecret  = abi.UseSecret
	UseProvide = abi.UseProvide
)

// Provides is a role of a step type, clause A9 of ABI.md. The plugin requests the permission
// {Use: UseProvide, Names: []string{role}}; without it the step type is only a step.
type Provides struct {
	As   abi.Role
	Name string // of a command, PLUGIN/VERB; empty for the other roles
}

// The roles of a step type.
const (
	RoleCommand          = abi.RoleCommand
	RoleErrorClassifier  = abi.RoleErrorClassifier
	RoleOutputClassifier = abi.RoleOutputClassifier
	RoleNotifier         = abi.RoleNotifier
	RoleModel            = abi.RoleModel
)

// A Problem is one invalid field of a step.
type Problem struct {
	Field   string // path: "params.path"
	Message string
	Hint    string
}

// BadFields returns the first problem as an error, nil for none, so that Run and
// Validate can share one check.
func BadFields(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := BadField(problems[0].Field, problems[0].Message)
	e.Hint = problems[0].Hint
	return e
}

// registered is the argument of Main; the exports use it.
var registered Plugin //nolint:unused // the exports are built for wasip1 only

// Main registers p as the plugin of this module. Call it once, from init: a plugin is
// a library, whose main function is never called.
func Main(p Plugin) { registered = p }
