package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// plainText is the type of answers with the output of commands. It may have bytes of any kind.
const plainText = "text/plain; charset=utf-8"

// OutputOptions say what of an output is read.
type OutputOptions struct {
	Stream string // stdout or stderr, empty for both
	Tail   int    // the last so many lines; 0 for all
	Times  bool   // each line begins with its time
	Follow bool   // Follow is called at the end of what there is
}

// An Output is the output of a command: [io.Reader] gives what is kept of it.
type Output interface {
	io.ReadCloser
	// Size is how many bytes there are to read, and Skip leaves out the first of them. Neither
	// is for outputs with times or a tail.
	Size() int64
	Skip(bytes int64) error
	// Follow waits for more; false is the end.
	Follow(ctx context.Context) (bool, error)
}

var outputQuery = []Param{
	{Name: "iteration", Type: "integer", Summary: "which iteration; the newest in which the step has printed if not given"},
	{Name: "attempt", Type: "integer", Summary: "which attempt of the step; the last if not given"},
	{Name: "execution", Type: "string", Summary: "only this one of the executions that the attempt started"},
	{Name: "stream", Type: "string", Summary: "stdout or stderr; both in the order of arrival if not given"},
	{Name: "offset", Type: "integer", Summary: "leave out so many bytes at the beginning"},
	{Name: "tail", Type: "integer", Summary: "only the last so many lines"},
	{Name: "times", Type: "boolean", Summary: "true: each line begins with its time"},
	{Name: "follow", Type: "boolean", Summary: "true: continue while the command prints"},
}

// outputRequest is what the query asks for.
type outputRequest struct {
	OutputOptions
	Iteration, Attempt int
	Execution          string
	Offset             int64
}

// output answers with what the commands of a step printed in one attempt.
func (a *API) output(w http.ResponseWriter, r *http.Request) error {
	asked := map[string]json.RawMessage{}
	if err := queryParams(r.URL, &Route{Query: outputQuery}, asked); err != nil {
		return err
	}
	var q outputRequest
	text, err := json.Marshal(asked)
	if err == nil {
		err = json.Unmarshal(text, &q)
	}
	if err != nil || min(q.Offset, int64(q.Tail), int64(q.Iteration), int64(q.Attempt)) < 0 {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: "query: a number is below 0 or too large"}
	}
	if q.Offset > 0 && (q.Tail > 0 || q.Times) {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "offset", Message: "query: offset cannot be combined with tail or times"}
	}
	if a.opt.Output == nil {
		return abi.New(abi.NotFound, "this server keeps no output of commands")
	}
	ids, err := a.executionsOf(r, q)
	if err != nil {
		return err
	}
	open := func() (*outputs, error) {
		o := &outputs{ctx: r.Context()}
		for i, id := range ids {
			opt := q.OutputOptions
			opt.Follow = q.Follow && i == len(ids)-1
			one, err := a.opt.Output(r.Context(), id, opt)
			if err != nil {
				return nil, errors.Join(err, o.Close())
			}
			o.list = append(o.list, one)
		}
		return o, nil
	}
	w.Header().Set("Content-Type", plainText)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !q.Follow && q.Tail == 0 && !q.Times && q.Offset == 0 {
		s, err := newSeekable(open)
		if err != nil {
			return err
		}
		defer s.Close()
		patience(w)
		if strings.Contains(r.Header.Get("Range"), ",") { // each range could read all of the output again
			r = r.Clone(r.Context())
			r.Header.Del("Range") // as RFC 9110 allows; the answer is the whole
		}
		http.ServeContent(w, r, "", time.Time{}, s)
		return nil
	}
	o, err := open()
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.Skip(q.Offset); err != nil {
		return err
	}
	if q.Follow { // it may be long before there is something to write
		placeOf(r.Context()).giveBack()
	}
	return send(r.Context(), w, o, q.Follow)
}

// send writes an output to a client and, with follow, what is printed later.
func send(ctx context.Context, w http.ResponseWriter, o *outputs, follow bool) error {
	buffer := make([]byte, 64<<10)
	for more := true; more; {
		for {
			n, err := o.Read(buffer)
			if n > 0 {
				patience(w)
				if _, err := w.Write(buffer[:n]); err != nil {
					return nil //nolint:nilerr // the other side went away
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		patience(w)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return nil //nolint:nilerr // the other side went away
		}
		var err error
		if more, err = o.Follow(ctx); err != nil {
			return nil //nolint:nilerr // the other side went away, or the server stops: the beginning was sent
		}
	}
	return nil
}

// executionsOf returns the ids of the executions that a request asks for, in the order of their start.
func (a *API) executionsOf(r *http.Request, q outputRequest) ([]string, error) {
	run, name := r.PathValue("run"), r.PathValue("path")
	type execution struct {
		ExecutionID, Run, Step string
		Iteration, Attempt     int
	}
	var list []execution // the newest first
	if q.Execution != "" {
		var one execution
		text, err := a.call(r, "code/shell/status", map[string]any{"executionId": q.Execution})
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			return nil, err
		}
		if one.Run == run {
			list = append(list, one)
		}
	}
	for before := ""; q.Execution == ""; {
		params := map[string]any{"run": run, "limit": 200}
		if before != "" {
			params["before"] = before
		}
		text, err := a.call(r, "logs/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Executions []execution
			Next       string
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("list executions of %q: %w", run, err)
		}
		list = append(list, page.Executions...)
		if before = page.Next; before == "" {
			break
		}
	}
	pick := func(is func(path string) bool) (ids []string) {
		var first *execution
		for i := range list {
			e := &list[i]
			if !is(e.Step) || q.Iteration > 0 && e.Iteration != q.Iteration || q.Attempt > 0 && e.Attempt != q.Attempt {
				continue
			}
			if first == nil {
				first = e
			}
			if e.Step == first.Step && e.Iteration == first.Iteration && e.Attempt == first.Attempt {
				ids = append(ids, e.ExecutionID)
			}
		}
		slices.Reverse(ids)
		return ids
	}
	if ids := pick(func(path string) bool { return path == name }); len(ids) > 0 {
		return ids, nil
	}
	address, err := a.stepAddress(r, run, name)
	if err != nil {
		return nil, err
	}
	if ids := pick(func(path string) bool { return item.ReplaceAllString(path, "") == address }); len(ids) > 0 {
		return ids, nil
	}
	return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "path", Message: fmt.Sprintf("run %q keeps no output of a step %q", run, name),
		Hint: "logs/list lists what is kept; only commands print"}
}

// item is the part of an execution path that its address does not have.
var item = lazyregexp.New(`#[0-9]+`)

// outputs are several outputs, one behind the other.
type outputs struct {
	ctx  context.Context // of the request: nothing is read for a client that went away
	list []Output
	at   int
}

func (o *outputs) Read(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	for o.at < len(o.list) {
		n, err := o.list[o.at].Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if o.at == len(o.list)-1 {
			break // the last may go on
		}
		o.at++
	}
	return 0, io.EOF
}

func (o *outputs) Close() error {
	var errs []error
	for _, one := range o.list {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

func (o *outputs) Size() (size int64) {
	for _, one := range o.list {
		size += one.Size()
	}
	return size
}

func (o *outputs) Skip(bytes int64) error {
	for ; o.at < len(o.list)-1 && bytes >= o.list[o.at].Size(); o.at++ {
		bytes -= o.list[o.at].Size()
	}
	if o.at == len(o.list) {
		return nil
	}
	return o.list[o.at].Skip(bytes)
}

func (o *outputs) Follow(ctx context.Context) (bool, error) {
	if len(o.list) == 0 {
		return false, nil
	}
	return o.list[len(o.list)-1].Follow(ctx)
}

// seekable makes an [io.ReadSeeker] of outputs, which are opened again to go back.
type seekable struct {
	open func() (*outputs, error)
	now  *outputs
	size int64
	next int64 // byte that now reads next
	at   int64 // byte that is wanted next
}

func newSeekable(open func() (*outputs, error)) (*seekable, error) {
	now, err := open()
	if err != nil {
		return nil, err
	}
	return &seekable{open: open, now: now, size: now.Size()}, nil
}

func (s *seekable) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	s.at = offset
	return offset, nil
}

func (s *seekable) Read(p []byte) (n int, err error) {
	if s.next > s.at {
		now, err := s.open()
		if err != nil {
			return 0, err
		}
		_ = s.now.Close() // it was only read
		s.now, s.next = now, 0
	}
	if s.next < s.at {
		if s.next > 0 { // what was read in part is not skipped
			_, err = io.CopyN(io.Discard, s.now, s.at-s.next)
		} else {
			err = s.now.Skip(s.at)
		}
		if err != nil {
			return 0, err
		}
		s.next = s.at
	}
	n, err = s.now.Read(p)
	s.next, s.at = s.next+int64(n), s.at+int64(n)
	return n, err
}

func (s *seekable) Close() error { return s.now.Close() }
