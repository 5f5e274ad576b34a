package code

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxResult limits the texts of a result, as they are written in JSON, so that the
// whole result stays below the 256 KiB of sdk/ABI.md A8.
const maxResult = 200 << 10

// maxLine limits one line of a result, in bytes; the rest is cut off.
const maxLine = 16 << 10

type readIn struct {
	Path     string `json:"path" jsonschema:"file to read, relative to the workspace"`
	Offset   int    `json:"offset,omitempty" jsonschema:"first line to read, from 1" minimum:"0"`
	Limit    int    `json:"limit,omitempty" jsonschema:"number of lines to read; as many as the result can hold if not given" minimum:"0"`
	Numbered bool   `json:"numbered,omitempty" jsonschema:"put the line number and a tab before each line"`
}

type readOut struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	StartLine  int    `json:"startLine"`
	Lines      int    `json:"lines" jsonschema:"number of lines of content"`
	TotalLines int    `json:"totalLines"`
	Truncated  bool   `json:"truncated" jsonschema:"content does not reach the end of the file, or a line was cut"`
	NextOffset int    `json:"nextOffset,omitempty" jsonschema:"offset of the next part"`
	Hash       string `json:"hash" jsonschema:"SHA-256 of the whole file, of models and agents without the values of secrets, for ifHash of code/write and code/edit"`
	Lossy      bool   `json:"lossy,omitempty" jsonschema:"the file is not UTF-8 and bytes were replaced"`
}

// read reads the whole file, because the result has its hash and number of lines, so
// the size of the file is limited. The result has a lower limit; further parts are
// read with offset.
func (f files) read(_ context.Context, call *command.Call, in readIn) (readOut, error) {
	w, err := f.open(call)
	if err != nil {
		return readOut{}, err
	}
	defer w.Close()
	p, err := w.Resolve(in.Path, false)
	if err != nil {
		return readOut{}, err
	}
	defer p.Close()
	data, err := w.load(p)
	if err != nil {
		return readOut{}, err
	}
	if isBinary(data) {
		return readOut{}, &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("read %q: binary file of %d bytes", in.Path, len(data))}
	}
	out := readOut{Path: pathtext.Encode(p.Path), Hash: hashOf(w.visible(data)), StartLine: max(in.Offset, 1)}
	if w.hides {
		data = w.redacted(data)
	}
	lines := splitLines(data)
	out.TotalLines = len(lines)
	if out.StartLine > max(out.TotalLines, 1) {
		return readOut{}, &abi.Error{
			Code: abi.BadFields, Field: "offset", Permanent: true,
			Message: fmt.Sprintf("read %q: offset %d is after the last line, %d", in.Path, out.StartLine, out.TotalLines),
		}
	}
	rest := lines[min(out.StartLine-1, len(lines)):]
	if in.Limit > 0 && in.Limit < len(rest) {
		rest, out.Truncated = rest[:in.Limit], true
	}
	var b strings.Builder
	size := 0
	for _, line := range rest {
		text, cut := clip(line, maxLine)
		if !utf8.ValidString(text) {
			text, out.Lossy = strings.ToValidUTF8(text, "\uFFFD"), true
		}
		if in.Numbered {
			text = fmt.Sprintf("%6d\t%s", out.StartLine+out.Lines, text)
		}
		if size += jsonSize(text); size > maxResult {
			out.Truncated = true
			break
		}
		out.Truncated = out.Truncated || cut
		b.WriteString(text)
		out.Lines++
	}
	out.Content = b.String()
	if next := out.StartLine + out.Lines; out.Truncated && next <= out.TotalLines {
		out.NextOffset = next
	}
	return out, nil
}

// splitLines splits data after each line feed. The last line may have none.
func splitLines(data []byte) [][]byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

// clip shortens a line to size bytes, between characters, and appends the number of
// bytes that were cut.
func clip(line []byte, size int) (string, bool) {
	if len(line) <= size {
		return string(line), false
	}
	end := size
	for end > size-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s… [%d bytes cut]\n", line[:end], len(line)-end), true
}
