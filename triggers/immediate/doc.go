// Package immediate is the trigger kind that fires because the sentinel is
// there: when it was created, and if wanted when it was edited or when the host
// starts.
package immediate
