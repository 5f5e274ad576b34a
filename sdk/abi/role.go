package abi

// Role is what the host uses a step type for besides steps of definitions. Clause A9 has the
// contract of each role: the fields that the host gives and the output that it expects.
type Role string

// The roles.
const (
	RoleCommand          Role = "command"           // called by name by steps, models, users and programs
	RoleErrorClassifier  Role = "error_classifier"  // tells the category of an error, for retries
	RoleOutputClassifier Role = "output_classifier" // classifies lines of output, for rules
	RoleNotifier         Role = "notifier"          // sends messages to people
	RoleModel            Role = "model"             // answers turns of language models
)

// Roles returns all roles, in the order of ABI.md.
func Roles() []Role {
	return []Role{RoleCommand, RoleErrorClassifier, RoleOutputClassifier, RoleNotifier, RoleModel}
}

// Pure reports whether the host calls a step type in the role outside of runs, without host
// calls. The others are executed as a run.
func (r Role) Pure() bool { return r == RoleErrorClassifier || r == RoleOutputClassifier }
