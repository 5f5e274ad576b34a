package role

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Failure is the fields of an error classifier, clause A9.3.
type Failure struct {
	Message  string   `json:"message"` // at most [MaxMessage] bytes
	Code     abi.Code `json:"code,omitempty"`
	Source   string   `json:"source"`
	ExitCode *int     `json:"exitCode,omitempty"` // of a process, if the error is its end
}

// The sources of a [Failure].
const (
	SourceStep     = "step"     // an attempt of a step
	SourceTicket   = "ticket"   // work on a ticket
	SourceOperator = "operator" // an environment that prevented a verification
)

// MaxMessage is how many bytes of an error's message a classifier gets.
const MaxMessage = 16 << 10

// An ErrorClass is the answer of an error classifier.
type ErrorClass struct {
	Category    string   `json:"category"`
	Subcategory string   `json:"subcategory,omitempty"` // "general" if absent
	Confidence  *float64 `json:"confidence,omitempty"`  // 0 to 1; 1 if absent
}

// Categories returns the categories that an error classifier may answer.
func Categories() []string {
	return []string{"api", "timeout", "runtime", "logic", "syntax", "context", "manual_review"}
}

// ReadErrorClass decodes the output of an error classifier. nil means that it does not know
// the error.
func ReadErrorClass(output json.RawMessage) (*ErrorClass, error) {
	var c *ErrorClass
	if err := json.Unmarshal(output, &c); err != nil {
		return nil, fmt.Errorf("want null or an object with category: %w", err)
	}
	switch {
	case c == nil:
		return nil, nil
	case !slices.Contains(Categories(), c.Category):
		return nil, fmt.Errorf("category %.40q: want one of %v", c.Category, Categories())
	case c.Subcategory != "" && !isWord(c.Subcategory):
		return nil, fmt.Errorf("subcategory %.80q: want at most 64 of a-z, 0-9 and _", c.Subcategory)
	case c.Confidence != nil && (*c.Confidence < 0 || *c.Confidence > 1):
		return nil, fmt.Errorf("confidence %v: want 0 to 1", *c.Confidence)
	}
	return c, nil
}

// isWord reports whether s is at most 64 of a-z, 0-9 and _.
func isWord(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(s) <= 64
}

// Lines is the fields of an output classifier, clause A9.4. It has at most [MaxLines].
type Lines struct {
	Lines []Line `json:"lines"`
}

// A Line is one line of output, without its end.
type Line struct {
	Text   string `json:"text"` // at most [MaxLine] bytes
	Stream string `json:"stream"`
}

// The limits of one call of an output classifier.
const (
	MaxLines = 256
	MaxLine  = 4 << 10 // bytes of one line; the rest is not given
)

// A LineClass is the answer of an output classifier about one line.
type LineClass struct {
	Classification string `json:"classification"`
	Action         string `json:"action,omitempty"` // emit if absent
}

// Classifications returns what an output classifier may call a line.
func Classifications() []string { return []string{"error", "warning", "info", "success", "verbose"} }

// ReadLineClasses decodes the output of an output classifier for n lines: one entry for each,
// nil for a line that it does not know.
func ReadLineClasses(output json.RawMessage, n int) ([]*LineClass, error) {
	var out struct {
		Lines []*LineClass `json:"lines"`
	}
	if err := json.Unmarshal(output, &out); err != nil {
		return nil, fmt.Errorf("want an object with lines: %w", err)
	}
	if len(out.Lines) != n {
		return nil, fmt.Errorf("lines has %d entries for %d lines", len(out.Lines), n)
	}
	for i, c := range out.Lines {
		switch {
		case c == nil:
		case !slices.Contains(Classifications(), c.Classification):
			return nil, fmt.Errorf("lines[%d].classification %.40q: want one of %v", i, c.Classification, Classifications())
		case c.Action != "" && c.Action != "emit" && c.Action != "suppress":
			return nil, fmt.Errorf("lines[%d].action %.40q: want emit or suppress", i, c.Action)
		}
	}
	return out.Lines, nil
}
