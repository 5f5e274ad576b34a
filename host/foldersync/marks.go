package foldersync

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A mark says which content of a file and which revision in the store are the
// same definition.
type mark struct {
	ID       sentinels.ID `json:"id"`
	Digest   string       `json:"digest"` // SHA-256 of the file
	Revision int          `json:"revision"`
	Hash     string       `json:"hash"` // of the definition
}

// marks are kept in a file of JSON lines, each the newest word about one file: a
// change is one line more, synced, so that it costs the same however many files
// there are. A line that a crash cut short is left out: then that file is read
// again. A write that fails, as on a full disk, costs no more than that: the
// marks stay in memory, and all of them are written with the next write.
type marks struct {
	path  string   // "" keeps them in memory
	file  *os.File // open for appending; nil before the first compact
	lines int      // in the file
	byKey map[string]mark
	types string // the step types that all was checked with
	stale bool   // a write failed: the file lacks something
}

// line is one line: a mark, the end of one (Mark nil), or the step types.
type line struct {
	File  string `json:"file,omitempty"`
	Mark  *mark  `json:"mark,omitempty"`
	Types string `json:"types,omitempty"`
}

// openMarks reads the file. The first write compacts it.
func openMarks(path string) (*marks, error) {
	m := &marks{path: path, byKey: map[string]mark{}, stale: true}
	if path == "" {
		return m, nil
	}
	raw, err := regularfile.Read(path, regularfile.Unlimited)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, regularfile.ErrKind) { // else the first write replaces it
		return nil, fmt.Errorf("read marks of files: %w", err)
	}
	m.read(raw)
	return m, nil
}

// read parses lines and skips invalid ones.
func (m *marks) read(raw []byte) {
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l line
		if json.Unmarshal(s.Bytes(), &l) == nil {
			m.apply(l)
		}
	}
}

func (m *marks) apply(l line) {
	switch {
	case l.Types != "":
		m.types = l.Types
	case l.File == "":
	case l.Mark == nil:
		delete(m.byKey, l.File)
	default:
		m.byKey[l.File] = *l.Mark
	}
}

func (m *marks) get(file string) mark { return m.byKey[file] }

// write adds lines and returns when they are on the disk. What could not be
// written is still known here, and written with all the rest the next time.
func (m *marks) write(lines ...line) error {
	var b bytes.Buffer
	for _, l := range lines {
		m.apply(l)
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	if m.path == "" || len(lines) == 0 && !m.stale {
		return nil
	}
	if m.lines += len(lines); m.stale || m.lines > 1000+4*len(m.byKey) {
		return m.compact()
	}
	_, err := m.file.Write(b.Bytes())
	if err == nil {
		err = m.file.Sync()
	}
	if err != nil {
		m.stale = true
		return fmt.Errorf("write marks of files: %w", err)
	}
	return nil
}

// compact rewrites the file with one line for each mark. It happens with the
// first write, after a write that failed, and whenever the file has four times the lines it needs, so the file
// stays within a few hundred bytes for each watched one.
func (m *marks) compact() error {
	m.stale = true // until it is done
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	if m.types != "" {
		if err := enc.Encode(line{Types: m.types}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.byKey)) {
		one := m.byKey[name]
		if err := enc.Encode(line{File: name, Mark: &one}); err != nil {
			return err
		}
	}
	dir, err := openDir(filepath.Dir(m.path))
	if err != nil {
		return fmt.Errorf("write marks of files: %w", err)
	}
	defer dir.close()
	if err := dir.replace(filepath.Base(m.path), b.Bytes(), 0o600, nil); err != nil {
		return fmt.Errorf("write marks of files: %w", err)
	}
	m.close()
	if m.file, err = regularfile.OpenFile(m.path, os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("write marks of files: %w", err)
	}
	m.lines, m.stale = len(m.byKey), false
	return nil
}

func (m *marks) close() {
	if m.file != nil {
		_ = m.file.Close() // every line was synced
		m.file = nil
	}
}
