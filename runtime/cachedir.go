package runtime

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// CheckCache makes a folder for compiled plugins and reports whether it can be
// one: it is this user's, no other user can write to it, and this process can.
func CheckCache(dir string) error { return wasm.CheckCache(dir) }

// cacheUnused is how long compiled code is kept that no process loads.
const cacheUnused = 30 * 24 * time.Hour

// tidyCache deletes what is left of plugins that are used no more. Its error is
// told and no error of the runtime: code that stays takes room and nothing else.
func (rt *Runtime) tidyCache() {
	defer rt.wg.Done()
	if err := rt.wasm.Prune(cacheUnused); err != nil {
		rt.log.Warn("compiled plugins that are used no more stay", "error", err)
	}
}
