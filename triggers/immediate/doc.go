// Package immediate implements the trigger kind that fires when its sentinel is
// created, and optionally when it is edited or when the host starts.
package immediate
