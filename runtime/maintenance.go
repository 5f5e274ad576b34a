package runtime

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
)

// What maintenance reports, see package [maintenance].
type (
	StateInfo = maintenance.StateInfo
	Compacted = maintenance.Compacted
)

// ErrDamaged is matched by the error of [Open] for a store that is damaged, and
// by those of reads that meet a damaged value. They carry an [*abi.Error] whose
// hint names the way out. Nothing of the store was changed.
var ErrDamaged = store.ErrDamaged

// InspectState describes a state folder without opening or changing anything,
// whether or not a process has it open. It takes half a second if one has.
func InspectState(dir string) (StateInfo, error) { return statefolder.Inspect(dir) }

// CheckChild starts a child of this program once and ends it: slow conditions
// and the check of a damaged store need one. The code unavailable means that no
// child can be started.
func CheckChild(ctx context.Context, child Child) error {
	return statefolder.CheckChild(ctx, child.resolve())
}

// CheckStore reads the whole store in a state folder and reports damage as
// [ErrDamaged], without changing anything. It reads the file itself first, which
// no content can make dangerous. Then, if a child can be started, the database
// library reads it there. A store that a process has open is [ErrHeld], a folder
// without a store is sound.
//
// It takes one second a GB from the page cache, else the time to read the disk.
func CheckStore(ctx context.Context, dir string, child Child) error {
	return statefolder.Check(ctx, dir, child.resolve())
}

// CompactStore copies the store of a state folder that no process has open to a
// file without free pages, which replaces it. Open does so by itself for a file
// of more than 64 MiB that is more than half empty.
func CompactStore(ctx context.Context, dir string) (Compacted, error) {
	return statefolder.Compact(ctx, dir)
}

// CheckCache creates a folder for compiled plugins and reports whether it can be
// one: it is this user's, no other user can write to it, and this process can.
func CheckCache(dir string) error { return wasm.CheckCache(dir) }

// cacheUnused is how long compiled code is kept that no process loads.
const cacheUnused = 30 * 24 * time.Hour

// tidyCache deletes compiled code of plugins that are not used any more. Its error
// is only logged: code that stays takes space and does no other harm.
func (rt *Runtime) tidyCache() {
	defer rt.wg.Done()
	if err := rt.wasm.Prune(cacheUnused); err != nil {
		rt.log.Warn("compiled plugins that are used no more stay", "error", err)
	}
}
