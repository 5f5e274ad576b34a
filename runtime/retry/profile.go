package retry

import "time"

// A Profile is a table of strategies. The first row that fits decides; the
// last row fits all.
type Profile struct {
	Name string
	Rows []Row
}

// A Row gives the strategy of a category, or of one subcategory.
type Row struct {
	Category    Category // empty for any
	Subcategory string   // empty for any
	Class       string   // what the profile calls these errors
	Strategy    Strategy
}

// Strategy returns the strategy of a classification and the profile's name for
// its kind. An empty profile never retries.
func (p Profile) Strategy(c Classification) (s Strategy, class string) {
	for _, r := range p.Rows {
		if (r.Category == "" || r.Category == c.Category) && (r.Subcategory == "" || r.Subcategory == c.Subcategory) {
			return r.Strategy, r.Class
		}
	}
	return Strategy{Backoff: None}, string(c.Category)
}

// Fine is the table of specification 000, the default. Its classes are the
// categories. What was not found by code is not repeated blindly: it needs
// another approach.
func Fine() Profile {
	return Profile{Name: "fine", Rows: append([]Row{
		{Logic, "not_found", "logic", Strategy{0, None, 0, 0}},
	}, fineRows()...)}
}

func fineRows() []Row {
	return []Row{
		{API, "", "api", Strategy{7, Exponential, 1000 * time.Millisecond, 0}},
		{Timeout, "", "timeout", Strategy{5, Exponential, 2000 * time.Millisecond, 0}},
		{Runtime, "", "runtime", Strategy{3, Linear, 5000 * time.Millisecond, 0}},
		{Logic, "", "logic", Strategy{2, Linear, 3000 * time.Millisecond, 0}},
		{Syntax, "", "syntax", Strategy{0, None, 0, 0}},
		{Context, "", "context", Strategy{1, Linear, 5000 * time.Millisecond, 0}},
		{Security, "", "security", Strategy{3, Linear, 5000 * time.Millisecond, 0}},
		{Verification, "", "verification", Strategy{3, Linear, 5000 * time.Millisecond, 0}},
		{"", "", "manual_review", Strategy{0, None, 0, 0}},
	}
}

// Coarse has the five classes of specification 001. Security and verification,
// which it does not know, are verdicts on code.
func Coarse() Profile {
	transient := Strategy{3, Exponential, 1000 * time.Millisecond, 0}
	apiError := Strategy{2, Linear, 2000 * time.Millisecond, 0}
	codeError := Strategy{1, None, 0, 0}
	systemError := Strategy{2, Exponential, 5000 * time.Millisecond, 0}
	unknown := Strategy{1, Linear, 5000 * time.Millisecond, 0}
	return Profile{Name: "coarse", Rows: []Row{
		{Logic, "not_found", "code_error", Strategy{0, None, 0, 0}},
		{API, "rate", "transient", transient},
		{API, "network", "transient", transient},
		{Timeout, "", "transient", transient},
		{API, "", "api_error", apiError},
		{Syntax, "", "code_error", codeError},
		{Logic, "", "code_error", codeError},
		{Security, "", "code_error", codeError},
		{Verification, "", "code_error", codeError},
		{Runtime, "", "system_error", systemError},
		{"", "", "unknown", unknown},
	}}
}

// Step is for steps whose author asked for retries: Fine, but an error of
// unknown kind gets three tries in all, and what was not found may turn up.
func Step() Profile {
	three := Strategy{2, Exponential, 1000 * time.Millisecond, 0}
	return Profile{Name: "step", Rows: append([]Row{
		{ManualReview, "unclassified", "unclassified", three},
		{ManualReview, "empty_error", "unclassified", three},
	}, fineRows()...)}
}

// Review is the strategy of work that a reviewer sent back: three tries in
// all, 5 s x attempt between them.
func Review() Strategy { return Strategy{2, Linear, 5000 * time.Millisecond, 0} }
