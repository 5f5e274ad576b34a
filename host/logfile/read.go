package logfile

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// followPoll is the time between two looks at a log that is followed. The process that writes it may end
// and another may continue it, so nothing else signals what is new.
const followPoll = 100 * time.Millisecond

// maxLine bounds a line that is read, in bytes; a longer one is passed on in parts.
const maxLine = 1 << 20

// ReadOptions select the lines of a log. The zero value selects all of them.
type ReadOptions struct {
	// Tail begins with the last so many lines. Negative: with none that is there. Default 0, all.
	Tail int
	// Follow continues with the lines that come, also after the file was rotated, until the context
	// ends. Default: ends at the end of the log.
	Follow bool
}

// Read passes the lines of the log at path to show, without their line feeds, the rotated files first. It
// ends with the error of show, or with the cause of ctx.
func Read(ctx context.Context, path string, opt ReadOptions, show func(line []byte) error) error {
	r := &reader{path: path, show: show}
	defer r.close()
	if err := r.begin(opt.Tail); err != nil {
		return err
	}
	for {
		more, err := r.next()
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if !opt.Follow {
			return r.rest()
		}
		select {
		case <-time.After(followPoll):
		case <-ctx.Done():
			return errors.Join(r.rest(), context.Cause(ctx))
		}
	}
}

// A reader reads a log from one file to the next.
type reader struct {
	path string
	show func([]byte) error

	name string // of the open file, when it was opened
	file *os.File
	info fs.FileInfo
	in   *bufio.Reader
	at   int64  // how far the file was read
	part []byte // of a line whose end was not written yet
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// open continues with the file name.
func (r *reader) open(name string) error {
	f, info, err := regularfile.Open(name)
	if err != nil {
		return err
	}
	r.close()
	r.name, r.file, r.info, r.in, r.at = name, f, info, bufio.NewReaderSize(f, 64<<10), 0
	return nil
}

// files returns the files of the log, the oldest first.
func (r *reader) files() ([]string, error) {
	past, err := (&Writer{path: r.path}).past()
	var list []string
	for _, p := range past {
		list = append(list, p.name)
	}
	return append(list, r.path), err
}

// begin opens the file with the first line that is wanted, at that line.
func (r *reader) begin(tail int) error {
	list, err := r.files()
	if err != nil {
		return err
	}
	if tail == 0 {
		return r.open(list[0])
	}
	for i := len(list) - 1; ; i-- {
		if err := r.open(list[i]); err != nil {
			return err
		}
		starts, err := lineStarts(r.file)
		if err != nil {
			return err
		}
		at := r.info.Size()
		if n := min(max(tail, 0), len(starts)); n > 0 {
			at = starts[len(starts)-n]
		}
		if tail -= len(starts); tail > 0 && i > 0 {
			continue
		}
		return r.seek(at)
	}
}

// lineStarts returns the positions of the lines of a file.
func lineStarts(f io.Reader) (starts []int64, err error) {
	in, at, begins := bufio.NewReaderSize(f, 64<<10), int64(0), true
	for {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && begins {
			starts = append(starts, at)
		}
		at += int64(len(piece))
		switch {
		case errors.Is(err, io.EOF):
			return starts, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		begins = err == nil
	}
}

func (r *reader) seek(at int64) error {
	if _, err := r.file.Seek(at, io.SeekStart); err != nil {
		return err
	}
	r.in.Reset(r.file)
	r.at = at
	return nil
}

// next passes a line on, or opens the next file. more is false at the end of the log.
func (r *reader) next() (more bool, err error) {
	// Before the read: what was written before the file was rotated is read before the next one is opened.
	following, err := r.following()
	if err != nil {
		return false, err
	}
	for {
		piece, err := r.in.ReadSlice('\n')
		r.at += int64(len(piece))
		r.part = append(r.part, piece...)
		switch {
		case err == nil, len(r.part) > maxLine:
			if err := r.rest(); err != nil {
				return false, err
			}
		case errors.Is(err, io.EOF):
			if following == "" {
				return false, nil
			}
			return true, errors.Join(r.rest(), r.open(following))
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}

// following returns the file after the open one, and none while there is none. A file that has become
// shorter was emptied by another program, such as logrotate: it is read from its beginning.
func (r *reader) following() (string, error) {
	now, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) { // between the two steps of a rotation, or removed
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if os.SameFile(now, r.info) {
		if now.Size() < r.at {
			return "", r.seek(0)
		}
		return "", nil
	}
	list, err := r.files()
	if err != nil {
		return "", err
	}
	for i, name := range list[:len(list)-1] {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, r.info) {
			return list[i+1], nil
		}
	}
	// The open one was removed.
	for _, name := range list {
		if r.name != r.path && name > r.name { // names of rotated files sort by time
			return name, nil
		}
	}
	return r.path, nil
}

// rest passes on the line that was read so far.
func (r *reader) rest() error {
	if len(r.part) == 0 {
		return nil
	}
	line := r.part
	if line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	r.part = r.part[:0]
	return r.show(line)
}
