package foldersync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Sync reads the file of a definition before the definition is edited elsewhere,
// so that the edit is based on the current file, or refused as stale. It returns
// an error if the file has problems, because writing the edit back would
// overwrite unfinished work. It ignores definitions without a watched file.
func (r *Syncer) Sync(ctx context.Context, id sentinels.ID) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	defer r.compareSoon()
	s, err := r.opt.Definitions.Definition(id)
	if abi.CodeOf(err) == abi.NotFound {
		return nil // the store returns the error of the edit
	}
	if err != nil {
		return err
	}
	f := r.files[s.Origin]
	if f == nil || f.claim != id {
		return nil
	}
	// Read here and not asked of the watcher, which may be a debounce behind.
	src, err := f.root.watcher.ReadFile(f.rel, sentinels.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.miss(f)
		more, _ := r.drop(ctx, []*file{f}) // without a grace period: the caller waits
		r.settle(ctx, more)
		return nil
	case err == nil && f.state == Live && digest(src) == f.mark.Digest:
		return nil
	}
	r.settle(ctx, []*file{f})
	if f.state == Invalid {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("edit definition %q: its file %q has problems: %s", id, f.shown, f.problems[0].Message),
			Hint: "fix the file, or restore its previous content"}
	}
	return nil
}

// WriteBack writes a revision that was made elsewhere to the file that the
// definition lives in, or removes the file of one that was deleted. It returns
// when that is on the disk. When the file was changed since it was last the same
// as the store, it stays as it is, becomes the next revision, and the error is
// conflict; the revision that was not written stays in the history. A revision with
// a bound is not written before a person accepts it, see [Syncer.waiting].
func (r *Syncer) WriteBack(ctx context.Context, s runtime.Stored) error {
	if s.Origin == "" {
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	defer r.compareSoon()
	f := r.files[s.Origin]
	if f == nil || f.claim != s.ID {
		return nil // not watched, or found at the next start
	}
	defer r.reportAll()
	if s.Deleted {
		err := r.removeFile(f)
		if rest := r.claimants(s.ID); err == nil && len(rest) > 0 { // a second file of that id comes to it
			r.settle(ctx, rest[:1])
		}
		return err
	}
	// Edits may come here in another order than they were made.
	head, err := r.opt.Definitions.Definition(s.ID)
	if err != nil {
		return err
	}
	if head.Revision == f.mark.Revision || head.Origin != f.origin || head.Within != nil {
		return nil
	}
	return r.writeFile(f, head)
}

// writeFile makes a file say what a revision says.
func (r *Syncer) writeFile(f *file, s runtime.Stored) error {
	src, err := r.unchanged(f)
	if err != nil {
		return err
	}
	// The definition as the store has it, not as the editor handed it over: what is
	// in the file must have the hash that the mark says.
	def, err := r.opt.Definitions.Decoded(s)
	if err != nil { // a step type is not live, which does not change how the step is written
		if def = sentinels.Lenient(s.Definition, r.opt.Definitions.DecodeOptions("")); def == nil {
			return err
		}
	}
	text, err := r.opt.Rewrite(src, def)
	if err != nil {
		return fmt.Errorf("write back %q: %w", s.ID, err)
	}
	p, name, err := targetDir(f)
	if err != nil {
		return fmt.Errorf("write back %q: %w", s.ID, err)
	}
	defer p.close()
	// Looked at again at the last moment: what is left is the time of a rename.
	last := func() error { _, err := r.unchanged(f); return err }
	if err := p.replace(name, text, 0o644, last); err != nil {
		return writeError(s.ID, err)
	}
	if err := r.opt.Trust.Content().Wrote(f.origin, text); err != nil {
		r.opt.Logger.Warn("written file is not recorded as trusted", "file", f.shown, "error", err)
	}
	f.state, f.problems, f.digest = Live, nil, digest(text)
	f.mark = mark{ID: s.ID, Digest: f.digest, Revision: s.Revision, Hash: s.Hash}
	// The mark last: without it the next start reads the file, finds this very
	// revision and makes the mark.
	r.keepLine(line{File: f.origin, Mark: &f.mark})
	return nil
}

func writeError(id sentinels.ID, err error) error {
	if abi.As(err) != nil {
		return err
	}
	return fmt.Errorf("write back %q: %w", id, err)
}

// unchanged returns a file's text if it is what was last the same as the store.
func (r *Syncer) unchanged(f *file) ([]byte, error) {
	if err := r.opt.Trust.Check(f.origin); err != nil {
		return nil, writeError(f.claim, err) // the written file would belong to this user
	}
	src, err := f.root.watcher.ReadFile(f.rel, sentinels.MaxBytes)
	if err == nil && digest(src) == f.mark.Digest {
		return src, nil
	}
	e := &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("write back %q: the file %q was changed meanwhile", f.claim, f.shown),
		Hint: "the file becomes the next revision; make the edit again on that"}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message, e.Hint = fmt.Sprintf("write back %q: the file %q is gone", f.claim, f.shown), "the definition goes with it"
	} else if err != nil {
		return nil, writeError(f.claim, err)
	}
	return nil, e
}

// removeFile removes the file of a definition that was deleted elsewhere.
func (r *Syncer) removeFile(f *file) error {
	if _, err := r.unchanged(f); err != nil {
		return err
	}
	// A link goes, not what it leads to.
	p, err := containingDir(f)
	if err != nil {
		return writeError(f.claim, err)
	}
	defer p.close()
	if err := p.remove(filepath.Base(f.origin)); err != nil {
		return writeError(f.claim, err)
	}
	f.claim, f.state = "", Gone
	delete(r.files, f.origin)
	r.report(f)
	r.keepLine(line{File: f.origin})
	return nil
}
