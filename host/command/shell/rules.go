package shell

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Rule classifies lines of output. The first rule that matches decides.
type Rule struct {
	Pattern        string `json:"pattern,omitempty" jsonschema:"regular expression (RE2 syntax), at most 1 KiB and 10,000 instructions when compiled; 20,000 of all rules"`
	Classification string `json:"classification,omitempty" jsonschema:"error, warning, info, success or verbose; case does not count; info if not given"`
	Action         string `json:"action,omitempty" jsonschema:"emit or suppress; case does not count; emit if not given"`
	Classifier     string `json:"classifier,omitempty" jsonschema:"in place of the others: an output classifier of a plugin, by its step type"`
}

// The classes of a line.
const (
	classError   = "error"
	classWarning = "warning"
	classInfo    = "info"
	classSuccess = "success"
	classVerbose = "verbose"
)

var classes = []string{classError, classWarning, classInfo, classSuccess, classVerbose}

const (
	maxRules   = 100
	maxPattern = 1 << 10
	maxProgram = 20_000 // instructions of all patterns of a ruleset, which stays compiled
)

// ruleset is rules ready to use. The zero value has none: every line is info.
type ruleset []compiledRule

// compiledRule is a rule that was checked.
type compiledRule struct {
	pattern    *boundedregexp.Regexp // nil with a classifier
	class      string
	emit       bool
	classifier string
}

// verdict is the decision of a ruleset about one line.
type verdict struct {
	class   string
	matched bool // by a rule, or there are none
	emit    bool
}

// compileRules checks rules and returns them in their stored spelling too. known returns
// why there is no classifier of a name; nil accepts any, as of rules that were checked when
// they were set.
func compileRules(rules []Rule, known func(classifier string) error) (ruleset, []Rule, error) {
	if len(rules) > maxRules {
		return nil, nil, badRule("rules", fmt.Sprintf("more than %d", maxRules))
	}
	var set ruleset
	var stored []Rule
	program := 0
	for i, r := range rules {
		field := func(name string) string { return fmt.Sprintf("rules[%d].%s", i, name) }
		if r.Classifier != "" {
			if r.Pattern != "" || r.Classification != "" || r.Action != "" {
				return nil, nil, badRule(field("classifier"), "stands for pattern, classification and action: leave these out")
			}
			if known != nil {
				if err := known(r.Classifier); err != nil {
					return nil, nil, classifierFault(field("classifier"), err)
				}
			}
			set = append(set, compiledRule{classifier: r.Classifier})
			stored = append(stored, r)
			continue
		}
		if r.Pattern == "" || len(r.Pattern) > maxPattern {
			return nil, nil, badRule(field("pattern"), "must have 1 to 1024 bytes, or classifier in its place")
		}
		re, err := boundedregexp.Compile(r.Pattern, boundedregexp.MaxInstructions)
		if err != nil {
			return nil, nil, badRule(field("pattern"), err.Error())
		}
		if program += re.Size(); program > maxProgram {
			return nil, nil, badRule("rules", fmt.Sprintf("the patterns up to rules[%d] compile to %d instructions, the limit is %d: repeat less, such as x* in place of x{0,900}", i, program, maxProgram))
		}
		r.Classification, r.Action = strings.ToLower(r.Classification), strings.ToLower(r.Action)
		if r.Classification == "" {
			r.Classification = classInfo
		}
		if !slices.Contains(classes, r.Classification) {
			return nil, nil, badRule(field("classification"), "must be one of "+strings.Join(classes, ", "))
		}
		switch r.Action {
		case "":
			r.Action = "emit"
		case "emit", "suppress":
		default:
			return nil, nil, badRule(field("action"), "must be emit or suppress")
		}
		set = append(set, compiledRule{pattern: re, class: r.Classification, emit: r.Action == "emit"})
		stored = append(stored, r)
	}
	return set, stored, nil
}

// badRule is the error at the time rules are set, not when a line comes.
func badRule(field, problem string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("field %q: %s", field, problem)}
}
