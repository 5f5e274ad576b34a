package cassette

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Version is the format of the file and of keys.
const Version = 1

// Limits of a file that is read. A longest line holds a longest request.
const (
	maxLine    = 64 << 20
	maxEntries = 100_000
)

// lineLimits bound a line: requests hold schemas and whole conversations.
var lineLimits = strictjson.Limits{Bytes: maxLine, Depth: 256, Keys: 4_000_000, StringBytes: maxLine}

// header is the first line.
type header struct {
	Cassette string `json:"cassette"`
	Version  int    `json:"version"`
}

// An Entry is one recorded turn. Exactly one of Reply, Error and Cancelled is set.
type Entry struct {
	N       int              `json:"n"` // from 1
	Key     string           `json:"key"`
	Request sentinels.Turn   `json:"request"`
	Reply   *sentinels.Reply `json:"reply,omitempty"`
	Error   *abi.Error       `json:"error,omitempty"`
	// Cancelled: the run ended the turn before it had an answer, as a failed branch or a time limit does.
	Cancelled bool  `json:"cancelled,omitempty"`
	Ms        int64 `json:"ms"`
}

// tape is what a file holds.
type tape struct {
	entries []Entry
	good    int64 // bytes up to the end of the last whole line
	torn    bool  // something incomplete follows
}

// read reads a cassette. An incomplete last line is not an error; anything
// else that is not as it should be is, with its line.
func read(r io.Reader) (tape, error) {
	var t tape
	lines := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return tape{}, fmt.Errorf("line %d: %w", number, err)
		}
		// Every whole line has an end; text without one is where a process was
		// killed or is writing just now.
		if errors.Is(err, io.EOF) {
			t.torn = len(line) > 0
			if number == 1 {
				return tape{}, errors.New("line 1: no header: this is no cassette")
			}
			return t, nil
		}
		if number == 1 {
			if err := checkHeader(line); err != nil {
				return tape{}, fmt.Errorf("line 1: %w", err)
			}
		} else {
			entry, err := readEntry(line)
			if err != nil {
				return tape{}, fmt.Errorf("line %d: %w", number, err)
			}
			if len(t.entries) == maxEntries {
				return tape{}, fmt.Errorf("line %d: more than %d turns", number, maxEntries)
			}
			t.entries = append(t.entries, entry)
		}
		t.good += int64(len(line)) + 1
	}
}

// readLine returns the next line without its end. With io.EOF it returns what
// came after the last end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// checkHeader refuses other formats and later versions: their keys would match
// nothing, and every request would diverge.
func checkHeader(line []byte) error {
	var h header
	if strictjson.DecodeOpen(line, &h, lineLimits) != nil || h.Cassette != "sentinel" {
		return errors.New("no header: this is no cassette")
	}
	if h.Version != Version {
		return fmt.Errorf("version %d, this program reads %d", h.Version, Version)
	}
	return nil
}

func readEntry(line []byte) (Entry, error) {
	// An unknown field may be one that decides the answer, so it is an error.
	var e Entry
	err := strictjson.Decode(line, &e, lineLimits)
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) { // the line is that of the file
		return Entry{}, fmt.Errorf("column %d: %s: %s", bad.Column, bad.Path, bad.Reason)
	}
	ends := 0
	for _, is := range []bool{e.Reply != nil, e.Error != nil, e.Cancelled} {
		if is {
			ends++
		}
	}
	if ends != 1 {
		return Entry{}, errors.New("a turn has either a reply or an error, or was cancelled")
	}
	if e.Reply != nil && e.Reply.ToolCalls == nil {
		e.Reply.ToolCalls = []sentinels.ToolCall{}
	}
	return e, nil
}
