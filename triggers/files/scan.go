package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// maxWatched bounds the folders that are watched, each of which takes half a
// kilobyte here and a kilobyte in the kernel. In a larger tree what is beyond is
// polled.
const maxWatched = 65_536

// A scan walks the folders that the patterns reach, sees to it that each is
// watched, and touches every file that is not as it is remembered.
type scan struct {
	w    *Watcher
	t    *tree           // nil while the root is missing: then nothing is seen
	old  []*group        // hear of a file that is new
	new  []*group        // take it as there from the beginning
	seen map[string]bool // files and folders by path, so that the others are known to be gone
	kept []string        // folders that could not be listed: what is below them stays
}

// scanAll looks at everything. Files that only groups in fresh want become
// their baseline.
func (w *Watcher) scanAll(fresh []*group) {
	begin := time.Now()
	w.mu.Lock()
	w.lost = false
	old := make([]*group, 0, len(w.groups))
	for _, g := range w.groups {
		old = append(old, g)
	}
	w.mu.Unlock()
	// Whether it has to poll shows in the scan: folders that could not be watched
	// last time, for want of watches, may be this time.
	w.polling = w.src == nil
	w.watchAbove()
	w.scan(".", old, fresh)
	if !w.polling {
		w.told = false // should it come to that again, it is news
	}
	w.scanned = time.Now()
	w.cost = w.scanned.Sub(begin)
}

// scanTree looks at a folder and all below it.
func (w *Watcher) scanTree(rel string) {
	w.mu.Lock()
	old := make([]*group, 0, len(w.groups))
	for _, g := range w.groups {
		old = append(old, g)
	}
	w.mu.Unlock()
	w.scan(rel, old, nil)
}

// scan opens the tree for one walk. What opening says of the root decides about
// everything below: a root that is gone takes its files with it, one that cannot
// be read for another reason takes none.
func (w *Watcher) scan(rel string, old, fresh []*group) {
	s := &scan{w: w, old: old, new: fresh, seen: map[string]bool{}}
	t, err := openTree(w.opt.Root, w.opt.Confined)
	switch {
	case err == nil:
		s.t = t
		s.folder(rel, strings.Count(rel, "/"))
		t.close()
	case !missing(err):
		w.opt.Logger.Warn("folder cannot be read; what was known of it stays", "folder", w.opt.Root, "reason", err)
		return
	}
	s.forget(rel)
}

// forget touches the files below rel that were not seen, and lets go of folders
// that are gone.
func (s *scan) forget(rel string) {
	below := func(p string) bool {
		if rel != "." && p != rel && !strings.HasPrefix(p, rel+"/") {
			return false
		}
		for _, k := range s.kept {
			if k == "." || strings.HasPrefix(p, k+"/") {
				return false
			}
		}
		return !s.seen[p]
	}
	for p := range s.w.index { // only this goroutine writes it
		if below(p) {
			s.w.touch(p, false)
		}
	}
	for dir := range s.w.watched {
		if below(dir) {
			delete(s.w.watched, dir)
			if s.w.src != nil {
				s.w.src.Unwatch(filepath.Join(s.w.opt.Root, filepath.FromSlash(dir)))
			}
		}
	}
}

// enters reports whether a folder can hold anything that is wanted.
func (s *scan) enters(dir string) bool {
	if isSkipped(dir) {
		return false
	}
	return some(s.old, func(g *group) bool { return g.enters(dir) }) || some(s.new, func(g *group) bool { return g.enters(dir) })
}

func some(groups []*group, is func(*group) bool) bool {
	for _, g := range groups {
		if is(g) {
			return true
		}
	}
	return false
}

// folder lists one folder. It is watched before it is listed, so that what
// comes in between is told.
func (s *scan) folder(rel string, depth int) {
	if depth > maxDepth {
		return
	}
	info, err := s.t.stat(rel)
	if err != nil || !info.IsDir() {
		if err != nil && !missing(err) {
			s.kept = append(s.kept, rel)
		}
		return
	}
	s.seen[rel] = true
	s.watch(rel, info)
	list, err := s.t.list(rel)
	if err != nil {
		// A folder that is closed to us for a moment has not lost its files.
		s.kept = append(s.kept, rel)
		return
	}
	for _, e := range list {
		child := path.Join(rel, e.Name())
		if isTemporary(e.Name()) {
			continue
		}
		switch {
		case e.IsDir(): // of the entry itself: no link is followed here
			if s.enters(child) {
				s.folder(child, depth+1)
			}
		case e.Type()&fs.ModeSymlink != 0:
			s.link(child, depth)
		case e.Type().IsRegular():
			s.file(child)
		}
	}
}

// link is a file if it leads to one, and a folder where a pattern says so.
func (s *scan) link(rel string, depth int) {
	info, err := s.t.stat(rel)
	switch {
	case err != nil:
	case info.IsDir():
		follows := func(g *group) bool { return g.follows(rel) }
		if s.enters(rel) && (some(s.old, follows) || some(s.new, follows)) {
			s.folder(rel, depth+1)
		}
	case info.Mode().IsRegular():
		s.file(rel)
	}
}

// file compares a file with what is remembered of it.
func (s *scan) file(rel string) {
	// Somebody who was there before hears of a difference, and after the
	// debounce: a scan may meet a file in the middle of being written.
	wants := func(g *group) bool { return g.wants(rel) }
	known := s.w.index[rel]
	if some(s.old, wants) {
		s.seen[rel] = true
		info, err := s.t.stat(rel)
		if err == nil && (known == nil || known.racy || known.stamp != stampOf(info)) {
			s.w.touch(rel, false)
		}
		return
	}
	// Only newcomers want it, for whom what is there now is the beginning.
	var takers []*group
	for _, g := range s.new {
		if g.wants(rel) {
			takers = append(takers, g)
		}
	}
	if len(takers) == 0 {
		return
	}
	s.seen[rel] = true
	for i := 0; i < len(takers); i++ {
		if takers[i].count++; takers[i].count > s.w.opt.MaxFiles {
			takers[i].crowded = true // it wants nothing any more
		}
	}
	if known == nil && some(takers, wants) {
		e, quiet := s.w.examine(s.t, rel)
		if e != nil {
			s.w.mu.Lock()
			s.w.index[rel] = e
			s.w.mu.Unlock()
		}
		if e == nil || e.racy || !quiet {
			s.w.touch(rel, false)
		}
	}
}

// watch sees to it that a folder is watched. The same folder is asked for
// again at each scan: that costs a microsecond, and a watch that got lost with
// a folder that was replaced comes back.
func (s *scan) watch(rel string, info fs.FileInfo) {
	w := s.w
	if w.src == nil {
		return
	}
	native := filepath.Join(w.opt.Root, filepath.FromSlash(rel))
	before, again := w.watched[rel]
	if again && !os.SameFile(before, info) {
		w.src.Unwatch(native) // of the folder that had this name
	}
	if !again && len(w.watched) >= maxWatched {
		w.degrade(fmt.Errorf("more than %d folders", maxWatched))
		return
	}
	switch err := w.src.Watch(native); {
	case err == nil:
		w.watched[rel] = info
	case errors.Is(err, fs.ErrNotExist):
		delete(w.watched, rel)
	default:
		delete(w.watched, rel)
		w.degrade(err)
	}
}

// watchAbove watches the nearest folder above the root that is there: the root
// may come, go, or be replaced as a whole.
func (w *Watcher) watchAbove() {
	if w.src == nil {
		return
	}
	for above := filepath.Dir(w.opt.Root); above != w.opt.Root; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err != nil || !info.IsDir() {
			if above == filepath.Dir(above) {
				return
			}
			continue
		}
		if w.outside != above && w.outside != "" {
			w.src.Unwatch(w.outside)
		}
		w.outside = above
		if err := w.src.Watch(above); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.degrade(err)
		}
		// A folder made before the watch was there is found by walking down again.
		if child := w.towards(above); child != w.opt.Root {
			if info, err := os.Stat(child); err == nil && info.IsDir() {
				w.src.Unwatch(above)
				w.watchAbove()
			}
		}
		return
	}
}

// towards returns the path one step from a folder above the root towards it.
func (w *Watcher) towards(above string) string {
	rest, err := filepath.Rel(above, w.opt.Root)
	if err != nil {
		return w.opt.Root
	}
	first, _, _ := strings.Cut(rest, string(filepath.Separator))
	return filepath.Join(above, first)
}
