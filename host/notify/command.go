package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/pipes"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// temporary is the exit code of a command that may take the message later: EX_TEMPFAIL of sysexits.h.
const temporary = 75

// outputDelay bounds the reading of output of processes that could not be ended.
const outputDelay = time.Second

// A Process is a command with all the processes that it starts.
type Process interface {
	// Exited is closed when the command has ended.
	Exited() <-chan struct{}
	// End ends all processes and returns how the command ended: by a signal, or with an exit code.
	End() (code int, signal string, err error)
}

// execute executes the configured command with a message.
func (s *Service) execute(ctx context.Context, m Message) error {
	stdin, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	env := []string{
		"SENTINEL_NOTIFY_TITLE=" + m.Title, "SENTINEL_NOTIFY_TEXT=" + m.Text, "SENTINEL_NOTIFY_SEVERITY=" + string(m.Severity),
		"SENTINEL_NOTIFY_RUN=" + m.Run, "SENTINEL_NOTIFY_TICKET=" + m.Ticket, "SENTINEL_NOTIFY_BY=" + m.By,
	}
	p, err := s.opt.Shell(s.opt.Command, env, bytes.NewReader(stdin), w)
	_ = w.Close() // the command has it
	if err != nil {
		return err
	}
	var output []byte
	var reader sync.WaitGroup
	reader.Go(func() { // ends with the processes, or outputDelay later
		_ = pipes.Copy(r, func(part []byte) error {
			output = append(output, part[:min(len(part), maxRefusal-len(output))]...)
			return nil
		})
	})
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	code, signal, err := p.End()
	pipes.End(r, outputDelay)
	reader.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case code == 0 && signal == "":
		return nil
	}
	e := &abi.Error{Code: abi.Plugin, Permanent: true, Message: fmt.Sprintf("exit code %d", code), Hint: "check notify.command; its exit code 75 has the message sent again"}
	if signal != "" {
		e.Message = "ended by a signal: " + signal
	}
	if text := strings.TrimSpace(strings.ToValidUTF8(string(output), "")); text != "" {
		e.Message += fmt.Sprintf(": %q", textcut.Mark(text, maxRefusal))
	}
	if code == temporary && signal == "" {
		e.Code, e.Permanent = abi.Unavailable, false
	}
	return e
}

// A Shell starts a shell line with further variables of its environment.
type Shell func(line string, env []string, stdin io.Reader, output *os.File) (Process, error)
