package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// folder looks at the modes of the state folder and of what is in it that is
// private.
func (x *examination) folder(context.Context) Check {
	dir := x.opt.State
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok("%s does not exist yet; the first start makes it", dir)
	case err != nil:
		return fail("see that this user may enter the folder, or choose another one with --state", "%v", err)
	case !info.IsDir():
		return fail("choose another one with --state", "%s is no folder", dir)
	}
	// These hold what runs have seen and done, or may call the engine.
	// Links are followed, as the programs that open these do.
	for _, name := range []string{"", "store.db", "token", "blobs", "snapshots", "shell", "logs"} {
		path := filepath.Join(dir, name)
		if err := private(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(fmt.Sprintf("chmod -R go-rwx %q, and chown -R it to this user", dir), "%v", err)
		}
	}
	if err := writable(dir); err != nil {
		return fail("see why this user may not write there: permissions, a read-only disk, a full one", "%v", err)
	}
	return ok("%s is private", dir)
}

// writable tries, because modes alone do not tell: a disk may be mounted so that
// read-only, or a quota is used up.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// disk compares the room with the mark of an engine with default options.
func (x *examination) disk(context.Context) Check {
	s := x.state
	switch {
	case s.FreeBytes < 0:
		return ok("the system does not say how much room there is")
	case s.FreeBytes < s.LowBytes:
		return fail("free space: below the limit nothing new starts", "%s free, the mark is %s", size(s.FreeBytes), size(s.LowBytes))
	case s.FreeBytes < 4*s.LowBytes:
		return warn("free space: below the limit nothing new starts", "%s free, the mark is %s", size(s.FreeBytes), size(s.LowBytes))
	}
	return ok("%s free, the store takes %s", size(s.FreeBytes), size(max(s.Bytes, 0)))
}

// owner says who has the store open. That is never wrong, only worth knowing:
// with a damaged store one wants to end the right process.
func (x *examination) owner(context.Context) Check {
	s := x.state
	switch {
	case x.found != nil:
		return fail("see that this user may read the store", "%v", x.found)
	case s.Held && s.Holder == 0:
		return ok("a process has the store open")
	case s.Held:
		return ok("process %d has the store open since %s", s.Holder, s.Since.Format(time.RFC3339))
	}
	return ok("no process has the store open")
}

// closed says how the last process ended.
func (x *examination) closed(context.Context) Check {
	if x.state.Held || x.state.Closed {
		return ok("the last process closed the store, or still has it")
	}
	return warn("nothing to do: the next start checks the store and says which runs can go on", "the last process ended without closing the store")
}

// store reads it whole, with the checksum of every value, if no process has it
// open. One that is missing beside what it left is damaged too.
func (x *examination) store(context.Context) Check {
	s := x.state
	if s.Held {
		return ok("not read, because a process has it open; that one reads every snapshot it takes")
	}
	began := time.Now()
	err := runtime.CheckStore(x.opt.State)
	switch e := abi.As(err); {
	case err == nil && s.Bytes <= 0:
		return ok("there is none yet")
	case err == nil:
		return ok("sound: %s read in %s, every checksum matches", size(s.Bytes), time.Since(began).Round(time.Millisecond))
	case errors.Is(err, runtime.ErrHeld):
		return ok("not read, because a process has opened it this moment")
	case errors.Is(err, runtime.ErrFormat) && e != nil, errors.Is(err, runtime.ErrDamaged) && e != nil:
		return fail(e.Hint, "%v", err)
	}
	return fail("see that this user may read it", "%v", err)
}

// oldSnapshot is the age from which a snapshot is worth a word.
const oldSnapshot = 7 * 24 * time.Hour

// snapshots looks whether there is something to go back to. A small store that
// is new has none, and that is as it should be.
func (x *examination) snapshots(context.Context) Check {
	list, err := runtime.Snapshots(x.opt.State)
	const fix = "let a host run for an hour, or see in its log why it takes none: room on the disk, as a rule"
	switch {
	case err != nil:
		return fail("see that this user may read the folder snapshots of the state folder", "%v", err)
	case len(list) == 0 && x.state.Bytes < 1<<20:
		return ok("none yet, and little to lose")
	case len(list) == 0:
		return warn(fix, "there is none: if the store is damaged, what is lost stays lost")
	}
	age := x.opt.Now().Sub(list[0].Taken)
	store, err := os.Stat(x.state.Store)
	if err == nil && age > oldSnapshot && store.ModTime().Sub(list[0].Taken) > oldSnapshot {
		return warn(fix, "the newest is of %s, and the store has changed since", list[0].Taken.Format(time.RFC3339))
	}
	return ok("%d, the newest is of %s", len(list), list[0].Taken.Format(time.RFC3339))
}

// cache looks at the folder of compiled plugins: what is there is run as it is.
func (x *examination) cache(context.Context) Check {
	dir := x.opt.Cache
	if dir == "" {
		return warn("set XDG_CACHE_HOME to a folder of this user that outlives the process", "the user has no folder for compiled plugins, so each start compiles them")
	}
	err := private(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok("%s does not exist yet; the first start makes it", dir)
	case err != nil:
		return fail(fmt.Sprintf("delete %q and let the next start make it: compiled plugins are code, and another user could have changed them", dir), "%v", err)
	}
	return ok("%s is private", dir)
}

// plugins looks at the folder of plugins of others.
func (x *examination) plugins(context.Context) Check {
	dir := x.opt.Plugins
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ok("%s does not exist: only the built-in step types are there", dir)
	}
	if err != nil {
		return fail("see that this user may read the folder", "%v", err)
	}
	n := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".wasm") {
			continue
		}
		n++
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		switch {
		case err != nil:
			return fail("mend or delete the file", "%v", err)
		case info.Size() == 0:
			return fail("copy the file again", "%s is empty", e.Name())
		}
	}
	if info, err := os.Stat(dir); err == nil && modesCount && info.Mode().Perm()&0o022 != 0 {
		return fail(fmt.Sprintf("chmod go-w %q: a user who may write there decides what runs here", dir), "others may write to %s: its mode is %#o", dir, info.Mode().Perm())
	}
	return ok("%d plugins in %s", n, dir)
}

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}
