package codeindex

import (
	"context"
	"fmt"
	stdruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
)

// MaxFile limits the files that are indexed, in bytes; larger ones are data, not text
// to read.
const MaxFile = 512 << 10

// settled is how long after a change a file's times prove that it was not changed
// again: file systems store times in units of up to two seconds.
const settled = 2 * time.Second

// portion is how many files one transaction reads. A call that is cancelled keeps the
// portions before.
const portion = 20_000

// Files returns the paths of the regular files of the workspace, sorted. complete is
// false if a limit cut the list.
func (x *Index) Files(ctx context.Context) (paths []string, complete bool, err error) {
	files, complete, err := x.list(ctx)
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths, complete, err
}

// Refresh makes the index equal to the workspace and returns the paths of its files
// as [Index.Files] does.
func (x *Index) Refresh(ctx context.Context) (paths []string, complete bool, err error) {
	now := time.Now()
	files, complete, err := x.list(ctx)
	if err != nil {
		return nil, false, err
	}
	if err := x.recovered(ctx, func() error { return x.refresh(ctx, files, now) }); err != nil {
		return nil, false, fmt.Errorf("refresh the code index of %q: %w", x.dir, err)
	}
	paths = make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return paths, complete, nil
}

// refresh compares the files with the snapshot, and writes what differs in portions.
func (x *Index) refresh(ctx context.Context, files []listed, now time.Time) error {
	if err := x.load(ctx); err != nil {
		return err
	}
	d := x.compare(files, now)
	for !d.equal {
		err := x.transaction(ctx, func() error {
			gen := x.gen
			if err := x.load(ctx); err != nil {
				return err
			}
			if gen != x.gen { // another process has written since
				d = x.compare(files, now)
			}
			return x.apply(ctx, d)
		})
		if err != nil {
			return err
		}
	}
	x.fresh = true
	return nil
}

// A difference is what to change in a snapshot.
type difference struct {
	files []file // of the workspace
	read  []int  // those of them to read
	gone  []int64
	equal bool
}

// compare merges the files of the workspace with those of the snapshot.
func (x *Index) compare(files []listed, now time.Time) *difference {
	d := &difference{files: make([]file, 0, len(files))}
	old := x.snap.files
	d.equal = len(old) == len(files)
	at := 0
	for _, f := range files {
		for ; at < len(old) && old[at].path < f.path; at++ {
			d.gone = append(d.gone, old[at].doc)
			d.equal = false
		}
		entry := file{path: f.path, stamp: f.stat.stamp, recent: f.stat.changed > now.Add(-settled).UnixNano()}
		read := true
		if at < len(old) && old[at].path == f.path {
			entry.doc, entry.hash = old[at].doc, old[at].hash
			read = old[at].stamp != entry.stamp || old[at].recent
			at++
		}
		if read {
			d.read = append(d.read, len(d.files))
		}
		d.files = append(d.files, entry)
	}
	for ; at < len(old); at++ {
		d.gone = append(d.gone, old[at].doc)
	}
	d.equal = d.equal && len(d.read) == 0 && len(d.gone) == 0
	return d
}

// A document is the words of a file that was read.
type document struct {
	at    int // in files
	hash  uint64
	words string // empty if the file has not changed
	text  bool
}

// apply changes the words and the snapshot, and removes from d what it has done.
func (x *Index) apply(ctx context.Context, d *difference) error {
	insert, err := x.conn.PrepareContext(ctx, "INSERT INTO words (rowid, text) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	remove, err := x.conn.PrepareContext(ctx, "DELETE FROM words WHERE rowid = ?")
	if err != nil {
		return err
	}
	defer remove.Close()
	// SQLite is not interrupted within a portion: a context that can end would cost
	// a goroutine for each row. Reading ends with ctx.
	run := context.WithoutCancel(ctx)
	drop := func(doc int64) error {
		if doc == 0 {
			return nil
		}
		_, err := remove.ExecContext(run, doc)
		return err
	}
	for _, doc := range d.gone {
		if err := drop(doc); err != nil {
			return err
		}
	}
	next := x.snap.next
	todo, left := d.read, []int(nil)
	if len(todo) > portion {
		todo, left = todo[:portion], todo[portion:]
	}
	err = x.readAll(ctx, d.files, todo, func(doc document) error {
		f := &d.files[doc.at]
		if doc.text && f.doc != 0 && f.hash == doc.hash {
			return nil
		}
		if err := drop(f.doc); err != nil {
			return err
		}
		f.doc, f.hash = 0, doc.hash
		if !doc.text {
			return nil
		}
		f.doc, next = next, next+1
		_, err := insert.ExecContext(run, f.doc, doc.words)
		return err
	})
	if err != nil {
		return err
	}
	d.gone, d.read, d.equal = nil, left, len(left) == 0
	files := d.files
	if len(left) > 0 { // they are to be read, whatever becomes of this process
		files = slices.Clone(files)
		for _, i := range left {
			files[i].recent = true
			if files[i].doc == 0 {
				files[i].path = ""
			}
		}
		files = slices.DeleteFunc(files, func(f file) bool { return f.path == "" })
	}
	if next == x.snap.next && slices.Equal(files, x.snap.files) {
		return nil // they were changed recently, but not since
	}
	return x.store(ctx, &snapshot{files: files, next: next}, x.gen+1)
}

// readAll reads files in goroutines, which end before it returns, and calls fn for each
// in any order.
func (x *Index) readAll(ctx context.Context, files []file, which []int, fn func(document) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	documents := make(chan document, 64)
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(stdruntime.GOMAXPROCS(0), 1+len(which)/32) {
		readers.Go(func() {
			var s splitter
			in := folders{root: x.opt.Root}
			defer in.close()
			for {
				n := int(next.Add(1)) - 1
				if n >= len(which) || ctx.Err() != nil {
					return
				}
				documents <- x.read(&in, &s, which[n], files[which[n]])
			}
		})
	}
	go func() {
		readers.Wait()
		close(documents)
	}()
	var err error
	for doc := range documents { // to the end, so that no reader blocks
		if err == nil {
			if err = fn(doc); err != nil {
				cancel()
			}
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// read reads a file. One that cannot be read, was replaced by a link or is not accepted
// has no words.
func (x *Index) read(in *folders, s *splitter, at int, f file) document {
	none := document{at: at}
	dir, name, err := in.in(f.path)
	if err != nil {
		return none
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return none
	}
	data, err := filewalk.ReadFile(dir, name, info, MaxFile)
	if err != nil || !x.opt.Accept(f.path, data) {
		return none
	}
	doc := document{at: at, hash: hashOf(data), text: true}
	if f.doc == 0 || f.hash != doc.hash {
		doc.words = string(s.split(data))
	}
	return doc
}
