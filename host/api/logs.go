package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ndjson is the type of answers with a JSON value a line.
const ndjson = "application/x-ndjson"

// Bounds of one answer with log lines.
const (
	defaultLines = 1000
	maxLines     = 10_000
	maxTailBytes = 16 << 20 // that a tail holds in memory; the oldest lines go first
)

// nextHeader says which line a reader goes on with.
const nextHeader = "Sentinel-Next-Offset"

// window is which lines are asked for.
type window struct {
	offset, limit int
	tail          int // 0: offset and limit count
}

// logs answers with lines of what a run told. A line that is still being
// written is left for the next time.
func (a *API) logs(w http.ResponseWriter, r *http.Request) error {
	win, err := readWindow(r)
	if err != nil {
		return err
	}
	// A run that told nothing and no run are different things; the file says the
	// same of both.
	run := r.PathValue("run")
	if _, err := a.call(r, "sentinel/status", map[string]any{"run": run, "brief": true}); err != nil {
		return err
	}
	if a.opt.Logs == nil {
		return abi.New(abi.NotFound, "this server keeps no logs of runs")
	}
	f, err := a.opt.Logs(r.Context(), sentinels.RunID(run))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = io.NopCloser(bytes.NewReader(nil)), nil
	}
	if err != nil {
		return fmt.Errorf("read logs of %q: %w", run, err)
	}
	defer f.Close()
	lines, next, err := win.read(f)
	if err != nil {
		return fmt.Errorf("read logs of %q: %w", run, err)
	}
	// All lines are read before the first is sent: an error can still be reported.
	w.Header().Set("Content-Type", ndjson)
	w.Header().Set(nextHeader, strconv.Itoa(next))
	patience(w)
	w.WriteHeader(http.StatusOK)
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return nil //nolint:nilerr // the other side went away
		}
	}
	return nil
}

// readWindow reads the query of the logs route.
func readWindow(r *http.Request) (window, error) {
	asked := map[string]json.RawMessage{}
	route := &Route{Query: []Param{{Name: "offset", Type: "integer"}, {Name: "limit", Type: "integer"}, {Name: "tail", Type: "integer"}}}
	if err := queryParams(r.URL, route, asked); err != nil {
		return window{}, err
	}
	win := window{limit: defaultLines}
	for _, p := range []struct {
		name     string
		into     *int
		min, max int
	}{{"offset", &win.offset, 0, 1 << 40}, {"limit", &win.limit, 1, maxLines}, {"tail", &win.tail, 1, maxLines}} {
		text, ok := asked[p.name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(string(text))
		if err != nil || n < p.min || n > p.max {
			return window{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: p.name,
				Message: fmt.Sprintf("query: %s is %s, it can be %d to %d", p.name, text, p.min, p.max)}
		}
		*p.into = n
	}
	if asked["tail"] != nil && (asked["offset"] != nil || asked["limit"] != nil) {
		return window{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "tail", Message: "query: tail takes the place of offset and limit"}
	}
	return win, nil
}

// read returns the lines of the window, each with its end, and the number of the
// line behind them.
func (win window) read(f io.Reader) (lines [][]byte, next int, err error) {
	// Lines are counted from the beginning each time. Logs of runs are bounded, and
	// an index would have to be kept in step with them.
	in := bufio.NewReaderSize(f, 64<<10)
	held := 0
	for n := 0; ; n++ {
		if win.tail == 0 && len(lines) == win.limit {
			return lines, n, nil
		}
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if err != nil {
			return lines, n, nil // without its end the line is not whole
		}
		if win.tail == 0 && n < win.offset {
			continue
		}
		lines, held = append(lines, line), held+len(line)
		for len(lines) > 1 && win.tail > 0 && (len(lines) > win.tail || held > maxTailBytes) {
			held -= len(lines[0])
			lines = lines[1:]
		}
		if win.tail == 0 && held > maxTailBytes {
			return lines, n + 1, nil // the rest with the next request
		}
	}
}
