package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/internal/share"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What run logs may take. A log that grows beyond most is cut to its head and
// its tail, so a run that goes on for months keeps how it began and what it did
// last; it is rewritten once for every most-head-tail bytes that it tells.
type logBounds struct {
	most, head, tail int64 // of one log, in bytes
	all              int64 // of the logs of all runs that are over
}

var defaultLogBounds = logBounds{most: 16 << 20, head: 8 << 20, tail: 4 << 20, all: 1 << 30}

// gapEvent is the event of the line that stands for what was cut out.
const gapEvent = "gap"

// A logGap is that line. Its counts are exact, over all cuts.
type logGap struct {
	Event   string          `json:"event"`
	Run     sentinels.RunID `json:"run"`
	Time    time.Time       `json:"time"`
	Message string          `json:"message"`
	Lines   int64           `json:"lines"`
	Bytes   int64           `json:"bytes"`
}

// cut takes the middle out of a log. The new file takes the old one's place at
// once; who reads the old one may read it to its end.
func (l *runLogs) cut(run sentinels.RunID) (err error) {
	from, info, err := regularfile.Open(l.path(run))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(l.dir, ".cut-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, to.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	out := bufio.NewWriter(to)
	if err := l.bounds.copy(out, from, info.Size(), run); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return os.Rename(to.Name(), l.path(run))
}

// copy copies the head and the tail of a log of size bytes and a gap line
// between them.
func (b logBounds) copy(to io.Writer, from io.Reader, size int64, run sentinels.RunID) error {
	lines := bufio.NewReader(from)
	gap := logGap{Event: gapEvent, Run: run, Time: time.Now().UTC()}
	var at int64 // where the line begins
	for cut := false; ; {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		end := at + int64(len(line))
		earlier, isGap := readGap(line)
		switch {
		case isGap: // of an earlier cut, where the head ends
			gap.Lines, gap.Bytes = gap.Lines+earlier.Lines, gap.Bytes+earlier.Bytes
			cut = true
		case !cut && end <= b.head:
			_, err = to.Write(line)
		case at < size-b.tail:
			gap.Lines, gap.Bytes = gap.Lines+1, gap.Bytes+int64(len(line))
			cut = true
		default:
			if gap.Lines > 0 {
				err = gap.write(to)
				gap.Lines = 0 // is written
			}
			if err == nil {
				_, err = to.Write(line)
			}
			cut = true
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		at = end
	}
}

func (g *logGap) write(to io.Writer) error {
	g.Message = fmt.Sprintf("%d lines with %d bytes were left out: the log was too long", g.Lines, g.Bytes)
	line, err := json.Marshal(g)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

func readGap(line []byte) (g logGap, ok bool) {
	if !bytes.HasPrefix(line, []byte(`{"event":"`+gapEvent+`",`)) {
		return g, false
	}
	return g, json.Unmarshal(line, &g) == nil
}

// remove takes the logs of runs away; a missing one is not an error.
func (l *runLogs) remove(runs []sentinels.RunID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, run := range runs {
		if f := l.files[run]; f != nil {
			f.Close()
			delete(l.files, run)
		}
		if err := os.Remove(l.path(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// A loggedRun is what sweep has to know about a run.
type loggedRun struct {
	found, over bool
	owner       string // for whom it executes; empty for a person
}

// sweep removes the logs of runs that are not known any more, and of those that are over so many that
// they take no more than they may: the oldest of the principal with the most, see package share.
func (l *runLogs) sweep(known func(sentinels.RunID) (loggedRun, error)) error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	type log struct {
		share.Item[sentinels.RunID]
		at time.Time
	}
	var gone []sentinels.RunID
	var over []log
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed in between
		}
		if strings.HasPrefix(e.Name(), ".cut-") && time.Since(info.ModTime()) > time.Hour { // left by a kill
			if err := os.Remove(filepath.Join(l.dir, e.Name())); err != nil {
				return err
			}
			continue
		}
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok {
			continue
		}
		run := sentinels.RunID(name)
		r, err := known(run)
		switch {
		case err != nil:
			return err
		case !r.found:
			gone = append(gone, run)
		case r.over:
			over = append(over, log{share.Item[sentinels.RunID]{Value: run, Owner: r.owner, Size: info.Size()}, info.ModTime()})
		}
	}
	slices.SortFunc(over, func(a, b log) int { return a.at.Compare(b.at) })
	items := make([]share.Item[sentinels.RunID], len(over))
	for i := range over {
		items[i] = over[i].Item
	}
	return l.remove(append(gone, share.Beyond(items, l.bounds.all, l.bounds.all/2)...))
}
