package retry

// Category is the category of an error, which selects its retry strategy.
type Category string

// Categories of failures to execute something.
const (
	API          Category = "api"           // network, rate limits, servers, authentication
	Timeout      Category = "timeout"       // something took too long
	Runtime      Category = "runtime"       // files, permissions, processes, memory
	Logic        Category = "logic"         // code or a plan ran and was wrong
	Syntax       Category = "syntax"        // code could not run
	Context      Category = "context"       // the input exceeds a model's context
	ManualReview Category = "manual_review" // unknown: a person should decide
)

// Categories of work that was done but not accepted.
const (
	Security     Category = "security"
	Verification Category = "verification"
)

// Classification is the category of an error and what else is known of it.
type Classification struct {
	Category    Category `json:"category"`
	Subcategory string   `json:"subcategory"` // "general" if nothing more specific is known
	Confidence  float64  `json:"confidence"`  // 0 to 1; 1 if it follows from a code
	// Permanent means that a retry cannot help, whatever the category is.
	Permanent bool `json:"permanent,omitempty"`
}

// Confidence of a classification by message: by a pattern, by an HTTP status, and
// without a match.
const (
	confidencePattern = 0.8
	confidenceStatus  = 0.9
	confidenceNone    = 0.3
)

func unclassified() Classification {
	return Classification{Category: ManualReview, Subcategory: "unclassified", Confidence: confidenceNone}
}
