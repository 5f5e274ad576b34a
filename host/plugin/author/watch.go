package author

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// pollEvery is how often the files of a project are looked at: a build takes
// longer than that, and polling works on every file system.
const pollEvery = 300 * time.Millisecond

// Watch calls build at once and after every change of a file of the project,
// until ctx ends; it returns what ended ctx. Modules and hidden files do not
// count, so a build does not start the next one. A change during a build is
// built next.
func Watch(ctx context.Context, dir string, build func()) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := ""
	for {
		now, err := state(dir)
		if err != nil {
			return fmt.Errorf("watch %q: %w", dir, err)
		}
		if now != last {
			last = now // before the build: what changes meanwhile differs again
			build()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// state is names, sizes and times of the project's files.
func state(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil && path == dir {
			return err
		}
		if err != nil { // a folder that went away while it was looked at
			return nil
		}
		hidden := strings.HasPrefix(e.Name(), ".") && path != dir
		switch {
		case e.IsDir() && (hidden || e.Name() == "node_modules" || e.Name() == "target"):
			return filepath.SkipDir
		case e.IsDir() || hidden || filepath.Ext(path) == ".wasm":
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil // it went away just now; the next look sees the rest
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return b.String(), err
}
