package retry

// Category is the kind of an error, as far as trying again is concerned.
type Category string

// The categories of specification 000.
const (
	API          Category = "api"           // network, rate limits, servers, authentication
	Timeout      Category = "timeout"       // something took too long
	Runtime      Category = "runtime"       // files, permissions, processes, memory
	Logic        Category = "logic"         // a mistake in code or plan that ran
	Syntax       Category = "syntax"        // a mistake in code that could not run
	Context      Category = "context"       // too much text for a model
	ManualReview Category = "manual_review" // unknown: a person should look
)

// Categories that came later; both are about work that was done and is no good.
const (
	Security     Category = "security"
	Verification Category = "verification"
)

// Categories returns every category, those of specification 000 first.
func Categories() []Category {
	return []Category{API, Timeout, Runtime, Logic, Syntax, Context, ManualReview, Security, Verification}
}

// Classification says what kind of error something is.
type Classification struct {
	Category    Category `json:"category"`
	Subcategory string   `json:"subcategory"` // "general" where there is nothing closer
	Confidence  float64  `json:"confidence"`  // 0 to 1; 1 when a code said it
	// Permanent says that another try cannot help, whatever the category.
	Permanent bool `json:"permanent,omitempty"`
}

// Confidence of a message: by pattern, by HTTP status, by nothing.
const (
	confidencePattern = 0.8
	confidenceStatus  = 0.9
	confidenceNone    = 0.3
)

func unclassified() Classification {
	return Classification{Category: ManualReview, Subcategory: "unclassified", Confidence: confidenceNone}
}
