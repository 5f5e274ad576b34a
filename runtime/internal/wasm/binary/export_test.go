package binary

// MaxSections is the limit of sections, for tests.
const MaxSections = maxSections
