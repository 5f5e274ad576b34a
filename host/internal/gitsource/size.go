package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// tooLarge is the error of what has more bytes than repositories of tickets may have.
func tooLarge(what string, limit int64) error {
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("%s has more than %d MiB", what, limit>>20),
		Hint: "raise worktrees.size if the machine has that space; a copy with branches that are gone is made again when its folder is removed",
	}
}

// blockSize is what the smallest file takes on a disk. It bounds the number of files too.
const blockSize = 4096

// CheckSize returns an error if the files of HEAD in a repository, as git writes them, have more than
// limit bytes; 0 means no limit. A small repository can have large files, and a tree that names another
// one many times. Files of Git LFS count as what git has of them.
func CheckSize(ctx context.Context, git gitexec.Runner, dir, url string, limit int64) error {
	if limit == 0 {
		return nil
	}
	sum := &treeSize{limit: limit}
	git.Out = sum
	a, err := git.Exec(ctx, dir, "", "", "ls-tree", "-r", "-l", "-z", "--full-tree", "HEAD")
	switch {
	case sum.over():
		return tooLarge("what "+url+" has in its files", limit)
	case err == nil && a.Code != 0:
		err = gitexec.Fatal("ls-tree", a)
	}
	return err
}

// A treeSize adds up the sizes in the output of git ls-tree.
type treeSize struct {
	limit, sum int64
	head       []byte // of an entry, up to its name
	inName     bool
}

var errTreeSize = errors.New("too large")

func (s *treeSize) over() bool { return s.sum > s.limit }

// Write returns an error when there is too much, which ends git.
func (s *treeSize) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		end := byte('\t')
		if s.inName {
			end = 0
		}
		part, after, found := bytes.Cut(rest, []byte{end})
		if rest = after; !s.inName {
			s.head = append(s.head, part...)
		}
		if !found {
			break
		}
		if s.inName = !s.inName; s.inName {
			fields := strings.Fields(string(s.head))
			s.head = s.head[:0]
			if n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil { // that of a submodule is "-"
				s.sum += (n + blockSize) / blockSize * blockSize
			}
			if s.over() {
				return 0, errTreeSize
			}
		}
	}
	return len(b), nil
}

// watchEvery is how often the size of a mirror is looked at while git fetches into it.
const watchEvery = 250 * time.Millisecond

// watchSize cancels a fetch into a mirror that grows beyond its limit. The returned function ends
// that, and returns why the mirror is too large.
func (m *Mirrors) watchSize(ctx context.Context, dir string, cancel context.CancelCauseFunc) (done func() error) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	problem := func() error { return tooLarge("the copy of a repository in "+dir, m.MaxSize) }
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(watchEvery)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-ticks.C:
				if sizeOf(filepath.Join(dir, "objects")) > m.MaxSize {
					cancel(problem())
					return
				}
			}
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		packs := filepath.Join(dir, "objects", "pack")
		if sizeOf(packs) <= m.MaxSize {
			return nil
		}
		// A git that was ended may have left them.
		left, _ := filepath.Glob(filepath.Join(packs, "tmp_*")) // the pattern is valid
		for _, path := range left {
			_ = os.Remove(path) // the error below names the folder
		}
		return problem()
	}
}

// sizeOf returns the bytes of the files below a folder, as far as they can be listed.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what disappears meanwhile takes no space
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
