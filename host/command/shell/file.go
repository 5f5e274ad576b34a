package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A FileWatch is a watch of a file of a workspace.
type FileWatch struct {
	Workspace string
	Base      string          // folder from which Workspace is reached without links, empty if that does not matter
	Request   json.RawMessage // a FileRequest
	Position  string          // where it begins, from [Manager.FileStart]
	Due       <-chan struct{} // closed at the time limit of the request
	// MayRead, if set, refuses files by their path relative to the workspace, with
	// links resolved, and by their lines.
	MayRead func(name string, line []byte) error
}

// FileRequest is the request of clause A6.5 of sdk/ABI.md for a file.
type FileRequest struct {
	File      string `json:"file"`
	Rules     []Rule `json:"rules"`
	Until     string `json:"until"`
	From      string `json:"from"`
	TimeoutMs int64  `json:"timeoutMs"` // see [FileWatch.Due]
}

// FileAnswer is the answer to a [FileRequest].
type FileAnswer struct {
	File     string `json:"file"`
	Lines    []Line `json:"lines"`
	Text     string `json:"text"`
	Finished bool   `json:"finished"` // the condition of until holds
	TimedOut bool   `json:"timedOut"`
	Dropped  int    `json:"dropped"`
	From     string `json:"from"`     // position at which the watch began
	Position string `json:"position"` // behind the last line
}

// filePoll is how often a file at its end is looked at. Its changes are not waited for
// with notifications: they miss files on network file systems.
const filePoll = 200 * time.Millisecond

// overtime is how long rules may match what is in the file at the time limit.
const overtime = time.Second

var errOvertime = errors.New("the time limit is over")

// position is a place in a file: the offset behind a complete line, and the identity of
// the file, "" if there was none.
type position struct {
	offset int64
	file   string
}

func (p position) String() string { return strconv.FormatInt(p.offset, 10) + "@" + p.file }

// parsePosition reverses [position.String].
func parsePosition(text string) (position, bool) {
	number, file, ok := strings.Cut(text, "@")
	offset, err := strconv.ParseInt(number, 10, 64)
	return position{offset, file}, ok && err == nil && offset >= 0
}

// parseFile reads a request.
func parseFile(request json.RawMessage, known func(classifier string) error) (q FileRequest, rules ruleset, err error) {
	if err = strictjson.Decode(request, &q, strictjson.Limits{}); err == nil {
		switch _, isPosition := parsePosition(q.From); {
		case q.File == "":
			err = errors.New(`field "file": empty`)
		case !slices.Contains([]string{"", "error", "match"}, q.Until):
			err = fmt.Errorf("field \"until\": must be error or match for a file, which has no end, not %q", q.Until)
		case q.Until == "" && q.TimeoutMs <= 0:
			err = errors.New("a file has no end: want until or timeoutMs")
		case q.Until == "error" && len(q.Rules) == 0:
			err = errors.New("field \"until\": error requires rules, because without rules no line is an error")
		case !isPosition && !slices.Contains([]string{"", "end", "start"}, q.From):
			err = fmt.Errorf("field \"from\": must be end, start or the position of an earlier watch, not %q", q.From)
		}
	}
	if err != nil {
		return q, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "watch: " + err.Error()}
	}
	rules, _, err = compileRules(q.Rules, known)
	return q, rules, err
}

// A tail reads the lines of a file that grows, under one name in a workspace.
type tail struct {
	tree    *rootfs.Tree
	name    string
	mayRead func(name string, line []byte) error
	path    string   // of f, with links resolved
	f       *os.File // nil while there is no file of that name
	info    fs.FileInfo
	at      position // behind the last complete line that was taken
	pending []byte   // the bytes behind it that were read
	number  int
	ahead   func(lines []role.Line) error // is called with the lines that are emitted next
	gone    bool                          // another file had the name at the last look, and this one was at its end
}

// openTail opens the workspace; the file need not exist.
func openTail(w FileWatch, name string) (*tail, error) {
	tree, err := command.OpenPlaced(w.Base, w.Workspace, rootfs.Rules{Outside: "outside the workspace", Hint: "paths are relative to the workspace"})
	if err != nil {
		return nil, fmt.Errorf("watch file %q: workspace: %w", name, err)
	}
	return &tail{tree: tree, name: name, mayRead: w.MayRead}, nil
}

func (t *tail) close() {
	t.drop()
	_ = t.tree.Close() // only read
}

// drop closes the file.
func (t *tail) drop() {
	if t.f != nil {
		_ = t.f.Close() // only read
		t.f = nil
	}
}

// find opens a file of the workspace; found is false if there is none.
func (t *tail) find(name string) (f *os.File, info fs.FileInfo, found bool, err error) {
	entry, err := t.tree.Resolve(name, false)
	if err == nil {
		defer entry.Close()
		if err := t.check(entry.Path, nil); err != nil {
			return nil, nil, false, err
		}
		t.path = entry.Path
		f, info, err = t.tree.OpenFile(entry)
	}
	switch abi.CodeOf(err) {
	case abi.NotFound, abi.Conflict: // Conflict: replaced at this moment
		return nil, nil, false, nil
	}
	return f, info, err == nil, err
}

// check returns an error if the file or one of its lines must not be read.
func (t *tail) check(name string, line []byte) error {
	if t.mayRead == nil {
		return nil
	}
	return t.mayRead(name, line)
}

// open opens the file if there is one.
func (t *tail) open() error {
	f, info, found, err := t.find(t.name)
	if found {
		t.f, t.info, t.gone, t.at.file = f, info, false, identity(info)
	}
	return err
}

// FileStart returns the position at which a watch begins: that of the request, or the
// start of the last line that is not complete.
func (m *Manager) FileStart(w FileWatch) (string, error) {
	q, _, err := parseFile(w.Request, m.knownClassifier)
	if err != nil {
		return "", err
	}
	t, err := openTail(w, q.File)
	if err != nil {
		return "", err
	}
	defer t.close()
	if err := t.open(); err != nil { // also to refuse what is outside the workspace
		return "", err
	}
	if p, ok := parsePosition(q.From); ok {
		return p.String(), nil
	}
	if q.From != "start" && t.f != nil {
		if t.at.offset, err = lastLineEnd(t.f, t.info.Size()); err != nil {
			return "", fmt.Errorf("watch file %q: %w", q.File, err)
		}
	}
	return t.at.String(), nil
}

// lastLineEnd returns the offset behind the last line end before size; of a line that
// exceeds the limit of a line, size.
func lastLineEnd(f io.ReaderAt, size int64) (int64, error) {
	start := max(size-maxLine, 0)
	data := make([]byte, size-start)
	n, err := f.ReadAt(data, start)
	if err != nil && err != io.EOF {
		return 0, err
	}
	if i := bytes.LastIndexByte(data[:n], '\n'); i >= 0 {
		return start + int64(i) + 1, nil
	}
	if start > 0 {
		return size, nil
	}
	return 0, nil
}

// WatchFile reads the lines behind a position until the condition of the request holds or
// the time is over. A file that is replaced is read to its end, then the new one from its
// beginning; one that becomes shorter is read from its beginning. What has no line end yet
// is no line.
func (m *Manager) WatchFile(ctx context.Context, w FileWatch) (json.RawMessage, error) {
	q, rules, err := parseFile(w.Request, m.knownClassifier)
	if err != nil {
		return nil, err
	}
	at, ok := parsePosition(w.Position)
	if !ok {
		return nil, abi.New(abi.Internal, fmt.Sprintf("watch file %q: invalid position %q", q.File, w.Position))
	}
	t, err := openTail(w, q.File)
	if err != nil {
		return nil, err
	}
	defer t.close()
	c := fileCollector{collector: collector{size: answerSize}}
	judging, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-w.Due:
		case <-judging.Done():
			return
		}
		select {
		case <-time.After(overtime):
			end(errOvertime)
		case <-judging.Done():
		}
	}()
	t.ahead = func(lines []role.Line) (err error) {
		c.verdicts, err = m.verdicts(judging, rules, lines)
		if err != nil {
			err = fmt.Errorf("watch file %q: %w", q.File, context.Cause(judging))
		}
		return err
	}
	if err := t.resume(at, func(text string) { c.addFile(t, 'h', text) }); err != nil {
		return nil, err
	}
	a := FileAnswer{File: q.File, From: w.Position}
	tick := time.NewTicker(filePoll)
	defer tick.Stop()
	var over bool   // the time is
	var rest string // file whose size was looked at since
	var last int64  // its size: a writer that is faster than the watch does not prolong it
	for {
		more, err := t.read(func(stream byte, text string) (stop bool) {
			v := c.addFile(t, stream, text)
			a.Finished = stream == 'f' && (q.Until == "error" && v.class == classError || q.Until == "match" && v.matched && v.emit)
			return a.Finished
		})
		if errors.Is(err, errOvertime) && t.at != at {
			break // the next watch reads on
		}
		if errors.Is(err, errOvertime) {
			return nil, &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("watch file %q: the rules did not match the first lines within the time limit", q.File), Hint: "use simpler patterns, or a longer timeoutMs"}
		}
		if err != nil {
			return nil, err
		}
		if over && rest != t.at.file {
			rest, last = t.at.file, t.size()
		}
		if a.Finished || over && (!more && !t.gone || t.at.offset > last) {
			break
		}
		if !over && closed(w.Due, tick.C, more) {
			over, rest, last = true, t.at.file, t.size()
		}
		if ctx.Err() != nil { // which may close Due as well
			return nil, fmt.Errorf("watch file %q: %w", q.File, ctx.Err())
		}
	}
	a.TimedOut = !a.Finished
	lines := c.answer("", 0, 0, false, Record{})
	a.Lines, a.Text, a.Dropped, a.Position = lines.Lines, lines.Text, lines.Dropped, t.at.String()
	return json.Marshal(a)
}

// closed reports whether due is closed. Unless there is more to read, it waits for that or
// for the next tick.
func closed(due <-chan struct{}, tick <-chan time.Time, more bool) bool {
	if !more {
		select {
		case <-due:
		case <-tick:
		}
	}
	select {
	case <-due:
		return true
	default:
		return false
	}
}

// size returns the size of the file, 0 if there is none.
func (t *tail) size() int64 {
	if t.f == nil {
		return 0
	}
	info, err := t.f.Stat()
	if err != nil {
		return 0 // the next read has the error
	}
	return info.Size()
}

// A fileCollector gathers the lines of a file.
type fileCollector struct {
	collector
	verdicts []verdict // of the lines that come next
}

// addFile takes a line of a file or a message of the host.
func (c *fileCollector) addFile(t *tail, stream byte, text string) verdict {
	v := verdict{classInfo, false, true}
	if stream != 'h' {
		v, c.verdicts = c.verdicts[0], c.verdicts[1:]
	}
	c.add(stored{number: t.number, stream: stream, ms: time.Now().UnixMilli(), text: text}, v)
	t.number++
	return v
}

// resume opens the file of a position: the one that has the name, or the one that had it
// when the position was taken and has another name in its folder now.
func (t *tail) resume(at position, note func(string)) error {
	if err := t.open(); err != nil {
		return err
	}
	if at.file == "" || t.f != nil && t.at.file == at.file {
		t.at.offset = at.offset
		return nil
	}
	if old, info, err := t.renamed(at.file); err != nil {
		return err
	} else if old != nil {
		t.drop()
		t.f, t.info, t.at = old, info, at
		return nil
	}
	note("[the file was replaced or removed before it was read to its end: lines may be missing]")
	t.at.offset = 0
	return nil
}

// renamed finds a file by its identity in the folder of the watched one.
func (t *tail) renamed(file string) (*os.File, fs.FileInfo, error) {
	dir := path.Dir(t.name)
	folder, err := t.tree.Resolve(dir, false)
	if err != nil || folder.Info == nil {
		return nil, nil, nil // no folder, no file
	}
	defer folder.Close()
	root, err := t.tree.OpenFolder(folder)
	if err != nil {
		return nil, nil, nil
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, fmt.Errorf("watch file %q: %w", t.name, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || identity(info) != file {
			continue
		}
		f, info, found, err := t.find(path.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		if found && identity(info) == file {
			return f, info, nil
		}
		if found {
			_ = f.Close() // renamed again meanwhile
		}
	}
	return nil, nil, nil
}

// read gives the next lines to emit, until it returns true, and reports whether there may
// be more at once.
func (t *tail) read(emit func(stream byte, text string) (stop bool)) (more bool, err error) {
	if t.f == nil {
		if err := t.open(); err != nil || t.f == nil {
			return false, err
		}
	}
	buffer := make([]byte, 64<<10)
	n, err := t.f.ReadAt(buffer, t.at.offset+int64(len(t.pending)))
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("watch file %q: %w", t.name, err)
	}
	t.pending = append(t.pending, buffer[:n]...)
	if err := t.ahead(completeLines(t.pending)); err != nil {
		return false, err
	}
	for {
		line, size, ok := firstLine(t.pending)
		if !ok {
			break
		}
		if err := t.check(t.path, t.pending[:size]); err != nil {
			return false, err
		}
		text := cleanShown(line)
		t.pending, t.at.offset = t.pending[size:], t.at.offset+int64(size)
		if emit('f', text) {
			return false, nil
		}
	}
	if n > 0 {
		t.gone = false
		return true, nil
	}
	return t.atEnd(emit)
}

// completeLines returns all lines of data that are complete.
func completeLines(data []byte) (lines []role.Line) {
	for {
		line, size, ok := firstLine(data)
		if !ok {
			return lines
		}
		lines, data = append(lines, role.Line{Text: cleanShown(line), Stream: streamName('f')}), data[size:]
	}
}

// firstLine returns the first line, and its size with its line end; a part of it if it
// exceeds the limit of a line.
func firstLine(data []byte) (line []byte, size int, ok bool) {
	i := bytes.IndexByte(data[:min(len(data), maxLine+1)], '\n')
	switch {
	case i >= 0:
		return data[:i], i + 1, true
	case len(data) > maxLine:
		return data[:maxLine], maxLine, true
	}
	return nil, 0, false
}

// atEnd looks whether the file became shorter or another one has its name.
func (t *tail) atEnd(emit func(stream byte, text string) bool) (more bool, err error) {
	own, err := t.f.Stat()
	if err != nil {
		return false, fmt.Errorf("watch file %q: %w", t.name, err)
	}
	if own.Size() < t.at.offset+int64(len(t.pending)) {
		t.at.offset, t.pending = 0, nil
		emit('h', "[the file became shorter: reading it from its beginning]")
		return true, nil
	}
	f, info, found, err := t.find(t.name)
	if err != nil || !found { // without a file of that name, the old one may still grow
		return false, err
	}
	defer f.Close()
	if os.SameFile(info, t.info) {
		return false, nil
	}
	if !t.gone { // once more: its writer may have written before it noticed
		t.gone = true
		return false, nil
	}
	if len(t.pending) > 0 {
		if err := t.check(t.path, t.pending); err != nil {
			return false, err
		}
		text := cleanShown(t.pending)
		if err := t.ahead([]role.Line{{Text: text, Stream: streamName('f')}}); err != nil {
			return false, err
		}
		t.at.offset, t.pending = t.at.offset+int64(len(t.pending)), nil
		if emit('f', text) {
			return false, nil
		}
	}
	t.drop()
	t.at = position{}
	if err := t.open(); err != nil {
		return false, err
	}
	emit('h', "[the file was replaced: reading the new one]")
	return true, nil
}
