package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Rule classifies lines of output. The first rule that matches decides.
type Rule struct {
	Pattern        string `json:"pattern" jsonschema:"regular expression (RE2 syntax), at most 1 KiB"`
	Classification string `json:"classification,omitempty" jsonschema:"error, warning, info, success or verbose; case does not count; info if not given"`
	Action         string `json:"action,omitempty" jsonschema:"emit or suppress; case does not count; emit if not given"`
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
)

// ruleset is rules ready to use. The zero value has none: every line is info.
type ruleset []compiledRule

// compiledRule is a rule that was checked.
type compiledRule struct {
	pattern *regexp.Regexp
	class   string
	emit    bool
}

// verdict is the decision of a ruleset about one line.
type verdict struct {
	class   string
	matched bool // by a rule, or there are none
	emit    bool
}

// compileRules checks rules and returns them in their stored spelling too.
func compileRules(rules []Rule) (ruleset, []Rule, error) {
	if len(rules) > maxRules {
		return nil, nil, badRule("rules", fmt.Sprintf("more than %d", maxRules))
	}
	var set ruleset
	var stored []Rule
	for i, r := range rules {
		field := func(name string) string { return fmt.Sprintf("rules[%d].%s", i, name) }
		if r.Pattern == "" || len(r.Pattern) > maxPattern {
			return nil, nil, badRule(field("pattern"), "must have 1 to 1024 bytes")
		}
		re, err := regexp.Compile(r.Pattern)
		if err != nil {
			return nil, nil, badRule(field("pattern"), err.Error())
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
		set = append(set, compiledRule{re, r.Classification, r.Action == "emit"})
		stored = append(stored, r)
	}
	return set, stored, nil
}

// badRule is the error at the time rules are set, not when a line comes.
func badRule(field, problem string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("field %q: %s", field, problem)}
}

// classify judges one line. Without rules every line is info; a line that no rule
// matches is verbose. Only a rule with the action suppress leaves a line out.
func (s ruleset) classify(text string) verdict {
	if len(s) == 0 {
		return verdict{classInfo, true, true}
	}
	for _, r := range s {
		if r.pattern.MatchString(text) {
			return verdict{r.class, true, r.emit}
		}
	}
	return verdict{classVerbose, false, true}
}
