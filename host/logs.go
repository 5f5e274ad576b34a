package host

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// runLogs keeps what runs tell, one file a run with a [runtime.Progress] a
// line. The journal is the truth; this is for people, so a line that cannot be
// written is reported once and costs no run its life. What it may take is said by
// [logBounds].
type runLogs struct {
	dir    string
	log    *slog.Logger
	bounds logBounds

	mu     sync.Mutex
	files  map[sentinels.RunID]*runLog
	failed bool
}

// A runLog is the open log of a run.
type runLog struct {
	*os.File
	size int64
}

func openRunLogs(dir string, log *slog.Logger) *runLogs {
	return &runLogs{dir: dir, log: log, bounds: defaultLogBounds, files: map[sentinels.RunID]*runLog{}}
}

// RunLog returns the file that holds what a run told.
func (h *Host) RunLog(run sentinels.RunID) string { return h.logs.path(run) }

func (l *runLogs) path(run sentinels.RunID) string {
	return filepath.Join(l.dir, string(run)+".jsonl")
}

func (l *runLogs) write(p runtime.Progress) {
	if p.Run == "" || p.Event.Partial() {
		return
	}
	line, err := logLine(p)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.file(p.Run)
	if err == nil {
		var n int
		n, err = f.Write(line)
		if f.size += int64(n); err == nil && f.size > l.bounds.most {
			f.Close()
			f = nil
			delete(l.files, p.Run)
			err = l.cut(p.Run)
		}
	}
	if err != nil && !l.failed {
		l.failed = true
		l.log.Warn("run log cannot be written", "run", p.Run, "error", err)
	}
	if p.Event == runtime.OnRunEnd && f != nil {
		f.Close()
		delete(l.files, p.Run)
	}
}

// largeOutput is the size in bytes from which the output of a step is not encoded again for its line.
const largeOutput = 16 << 10

// logLine returns p as a line. encoding/json checks and copies a value byte by byte, which for a large output takes as
// long as half of the step: it was checked when it became a value, so it is only put behind the other fields.
func logLine(p runtime.Progress) ([]byte, error) {
	output := p.Output
	large := len(output) >= largeOutput && strictjson.IsCompact(output) && bytes.IndexByte(output, '\n') < 0
	if large {
		p.Output = nil
	}
	line, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if !large {
		return append(line, '\n'), nil
	}
	return slices.Concat(line[:len(line)-1], []byte(`,"output":`), output, []byte("}\n")), nil // there is an event before it
}

// openFiles bounds how many run logs are open at once.
const openFiles = 64

func (l *runLogs) file(run sentinels.RunID) (*runLog, error) {
	if f := l.files[run]; f != nil {
		return f, nil
	}
	if len(l.files) >= openFiles {
		for id, f := range l.files { // any of them: it is opened again for the next line
			f.Close()
			delete(l.files, id)
			break
		}
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := regularfile.OpenFile(l.path(run), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	size := info.Size()
	if torn(f, size) {
		// Ended here, or the next line would be lost with it.
		if _, err := f.WriteString("\n"); err != nil {
			f.Close()
			return nil, err
		}
		size++
	}
	l.files[run] = &runLog{f, size}
	return l.files[run], nil
}

// torn reports whether a host that was killed left the last line unfinished.
func torn(f *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n'
}

func (l *runLogs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, f := range l.files {
		f.Close()
		delete(l.files, id)
	}
}
