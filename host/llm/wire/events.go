package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxEvent bounds the data of one event, in bytes: text of [MaxAnswer] in JSON.
const maxEvent = maxWhole

// Events reads a stream of server-sent events, as the HTML standard defines it.
// Ids and the time to reconnect are ignored: a turn is not continued.
type Events struct {
	lines *bufio.Reader
	name  string
	data  []byte
	err   error
}

// NewEvents returns the events of the body of a response.
func NewEvents(body io.Reader) *Events { return &Events{lines: bufio.NewReaderSize(body, 16<<10)} }

// Next reads the next event that has data and reports whether there is one. An
// event that the end of the stream cuts off is dropped, as the standard says.
func (e *Events) Next() bool {
	e.name, e.data = "", nil
	hasData := false
	for e.err == nil {
		line, err := e.line(len(e.data))
		if err != nil {
			e.err = err
			return false
		}
		if len(line) == 0 {
			if hasData && strictjson.MayExceed(e.data, maxValues) {
				e.err = fmt.Errorf("an event of the stream has more than %d JSON values", maxValues)
				return false
			}
			if hasData {
				return true
			}
			e.name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":")) // a line that begins with a colon is a comment
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if hasData {
				e.data = append(e.data, '\n')
			}
			e.data, hasData = append(e.data, value...), true
		}
	}
	return false
}

// line reads a line without its end, which is LF or CRLF. used is how much of
// maxEvent the event has so far.
func (e *Events) line(used int) ([]byte, error) {
	var long []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		if used+len(long)+len(part) > maxEvent {
			return nil, fmt.Errorf("an event of the stream has more than %d bytes", maxEvent)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
}

// Name returns the type of the event, "" if the stream does not name it.
func (e *Events) Name() string { return e.name }

// Data returns the data of the event.
func (e *Events) Data() []byte { return e.data }

// Err returns why the stream ended, nil at its regular end.
func (e *Events) Err() error {
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}
