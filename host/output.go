package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Outputs and logs are stored without the secrets that were known when they were written. What became a
// secret later is removed for all readers but persons.

// OutputOptions say what of an output is read.
type OutputOptions struct {
	Stream string // stdout or stderr; empty for both
	Tail   int    // the last so many lines; 0 for all
	Times  bool   // each line begins with its time
	Follow bool   // the reader calls [Output.Follow] at the end of what there is
}

// An Output reads what an execution has written.
type Output interface {
	io.ReadCloser
	Size() int64            // bytes to read, without those of a follow
	Skip(bytes int64) error // leaves out the first bytes
	// Follow waits until there is more to read, and reports false when the execution is over and
	// everything was read.
	Follow(ctx context.Context) (bool, error)
}

// Output opens the output of an execution for the principal of ctx: only people read values in it that
// became secrets after they were written.
func (h *Host) Output(ctx context.Context, execution string, opt OutputOptions) (Output, error) {
	open := func() (*shell.Output, error) {
		return h.shells.OpenOutput(ctx, &command.Call{By: command.ByUser}, execution, shell.OutputOptions{Stream: opt.Stream, Tail: opt.Tail, Times: opt.Times})
	}
	raw, err := open()
	if err != nil {
		return nil, err
	}
	if seesSecrets(ctx) {
		return raw, nil
	}
	h.secrets.LearnStored()
	o := &redactedOutput{raw: raw, redactor: h.redactor, follow: opt.Follow}
	if opt.Tail == 0 && !opt.Times { // offsets are those of the text without secrets
		again, err := open()
		if err == nil {
			o.size, err = io.Copy(io.Discard, &redactedOutput{raw: limited{again, io.LimitReader(again, raw.Size())}, redactor: h.redactor})
			err = errors.Join(err, again.Close())
		}
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	return o, nil
}

// seesSecrets reports whether the principal of ctx is a person.
func seesSecrets(ctx context.Context) bool {
	kind := principal.From(ctx).Kind
	return kind == "" || kind == principal.Person
}

// limited is the beginning of an output.
type limited struct {
	Output
	io.Reader
}

func (l limited) Read(p []byte) (int, error) { return l.Reader.Read(p) }

// A redactedOutput is an output without the secrets that are known now. What it holds back at the end
// may be the beginning of a secret that goes on.
type redactedOutput struct {
	raw      Output
	redactor *redact.Redactor
	follow   bool
	over     bool // nothing follows
	size     int64

	chunk []byte
	held  string // read, and not in ready yet
	ready string
}

// Read implements [io.Reader].
func (o *redactedOutput) Read(p []byte) (int, error) {
	if o.chunk == nil {
		o.chunk = make([]byte, 64<<10)
	}
	for o.ready == "" {
		n, err := o.raw.Read(o.chunk)
		o.held += string(o.chunk[:n])
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		case err != nil && n == 0 && (o.held == "" || o.follow && !o.over):
			return 0, io.EOF
		case err != nil && n == 0:
			o.ready, o.held = o.redactor.String(o.held), ""
		default:
			o.ready, o.held = o.redactor.Split(o.held)
		}
	}
	n := copy(p, o.ready)
	o.ready = o.ready[n:]
	return n, nil
}

// Size implements [Output].
func (o *redactedOutput) Size() int64 { return o.size }

// Skip implements [Output].
func (o *redactedOutput) Skip(bytes int64) error {
	_, err := io.CopyN(io.Discard, o, bytes)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Follow implements [Output].
func (o *redactedOutput) Follow(ctx context.Context) (bool, error) {
	if o.over {
		return false, nil
	}
	more, err := o.raw.Follow(ctx)
	if err == nil && !more {
		o.over, more = true, o.held != ""
	}
	return more, err
}

// Close implements [io.Closer].
func (o *redactedOutput) Close() error { return o.raw.Close() }

// OpenRunLog opens the log of a run, one [runtime.Progress] a line, for the principal of ctx as
// [Host.Output] does.
func (h *Host) OpenRunLog(ctx context.Context, run sentinels.RunID) (io.ReadCloser, error) {
	f, _, err := regularfile.Open(h.RunLog(run))
	if err != nil {
		return nil, err
	}
	if seesSecrets(ctx) {
		return f, nil
	}
	h.secrets.LearnStored()
	return &redactedLines{Closer: f, in: bufio.NewReader(f), redact: h.hide}, nil
}

// redactedLines are lines of JSON without secrets.
type redactedLines struct {
	io.Closer
	in     *bufio.Reader
	redact func([]byte) []byte
	ready  []byte
}

// Read implements [io.Reader].
func (l *redactedLines) Read(p []byte) (int, error) {
	if len(l.ready) == 0 {
		line, err := l.in.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		if l.ready = append([]byte(nil), l.redact(text)...); ended {
			l.ready = append(l.ready, '\n')
		}
	}
	n := copy(p, l.ready)
	l.ready = l.ready[n:]
	return n, nil
}

// WithoutSecrets returns a JSON text without the secrets that are known now, also those that `sentinel
// secret set` stored since the host was opened.
func (h *Host) WithoutSecrets(text json.RawMessage) json.RawMessage {
	h.secrets.LearnStored()
	return h.hide(text)
}
