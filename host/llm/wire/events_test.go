package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

func read(body io.Reader) (events []string, err error) {
	e := wire.NewEvents(body)
	for e.Next() {
		events = append(events, e.Name()+"|"+string(e.Data()))
	}
	return events, e.Err()
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"one", "data: a\n\n", []string{"|a"}},
		{"named", "event: ping\ndata: {}\n\n", []string{"ping|{}"}},
		{"crlf", "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x|a", "|b"}},
		{"several lines", "data: a\ndata: b\ndata:\ndata:  c\n\n", []string{"|a\nb\n\n c"}},
		{"no space", "data:a\n\n", []string{"|a"}},
		{"comments and other fields", ": keep\nid: 7\nretry: 10\ndata: a\nunknown\n\n: keep\n\n", []string{"|a"}},
		{"empty data", "data\n\n", []string{"|"}},
		{"a name without data is no event", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"cut off", "data: a\n\ndata: b\n", []string{"|a"}},
		{"cut off in a line", "data: a\n\ndata: b", []string{"|a"}},
		{"nothing", "", nil},
		{"long", "data: " + strings.Repeat("x", 100<<10) + "\n\n", []string{"|" + strings.Repeat("x", 100<<10)}},
	} {
		for name, body := range map[string]io.Reader{
			"whole": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
		} {
			got, err := read(body)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: error %v (-want +got):\n%s", c.name, name, err, diff)
			}
		}
	}
}

func TestEventsReportsBrokenStream(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\nda"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("got %q, error %v", got, err)
	}
}

// endless returns line again and again.
type endless struct {
	line string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.line[e.at:])
	e.at = (e.at + n) % len(e.line)
	return n, nil
}

func TestEventsAreBounded(t *testing.T) {
	for name, line := range map[string]string{"a line without end": strings.Repeat("x", 1000), "an event without end": "data: " + strings.Repeat("x", 500) + "\n"} {
		_, err := read(&endless{line: line})
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestValuesAreBounded: three bytes of an answer must not take hundreds of bytes of memory.
func TestValuesAreBounded(t *testing.T) {
	many := `{"choices":[` + strings.Repeat("{},", 200_000) + `{}]}`
	if _, err := read(strings.NewReader("data: " + many + "\n\n")); err == nil || !strings.Contains(err.Error(), "more than 200000 JSON values") {
		t.Errorf("an event: %v", err)
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(many))}
	if _, err := wire.TakeWhole(response, func() {}); err == nil || !strings.Contains(err.Error(), "more than 200000 values") {
		t.Errorf("an answer: %v", err)
	}
}

// FuzzEvents: however the stream is cut into reads, its events are the same, and they
// have no line ends but those between lines of data.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\ndata: b\ndata: c\n\n: x\n\n"), 3)
	f.Add([]byte("data:\r\n\r\n\n\ndata"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		whole, err := read(bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := read(&chunked{stream, 1 + (size&0xff)%17})
		if diff := cmp.Diff(whole, parts); diff != "" || err != nil {
			t.Fatalf("in pieces: error %v (-whole +pieces):\n%s", err, diff)
		}
	})
}

// chunked reads n bytes at a time.
type chunked struct {
	left []byte
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.n, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}
