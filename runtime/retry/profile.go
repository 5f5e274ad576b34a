package retry

import "time"

// A Profile is a table of strategies. The first row that matches decides.
type Profile struct {
	Name string
	Rows []Row
}

// A Row gives the strategy of a category, or of one subcategory.
type Row struct {
	Category    Category // empty for any
	Subcategory string   // empty for any
	Class       string   // name of these errors in the profile
	Strategy    Strategy
}

// Strategy returns the strategy and the class of a classification. Without a
// matching row there are no retries.
func (p Profile) Strategy(c Classification) (s Strategy, class string) {
	for _, r := range p.Rows {
		if (r.Category == "" || r.Category == c.Category) && (r.Subcategory == "" || r.Subcategory == c.Subcategory) {
			return r.Strategy, r.Class
		}
	}
	return Strategy{Backoff: None}, string(c.Category)
}

// Fine has one class for each category. An error with the code not_found is not
// retried, because a repetition would not find it either.
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

// Coarse has five classes: transient, api_error, code_error, system_error and
// unknown. Security and verification are code_error.
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

// Step is the profile for steps with a retry policy. It differs from Fine in two
// rows: an error of unknown category has up to three attempts, and not_found is
// retried as other logic errors.
func Step() Profile {
	three := Strategy{2, Exponential, 1000 * time.Millisecond, 0}
	return Profile{Name: "step", Rows: append([]Row{
		{ManualReview, "unclassified", "unclassified", three},
		{ManualReview, "empty_error", "unclassified", three},
	}, fineRows()...)}
}

// Review is the strategy for work that a reviewer rejected: up to three attempts,
// with delays of 5 s and 10 s.
func Review() Strategy { return Strategy{2, Linear, 5000 * time.Millisecond, 0} }
