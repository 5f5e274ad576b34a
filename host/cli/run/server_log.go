package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/logfile"
)

// serverLog shows the log file of the server that has the state folder, or of the last one that had it.
// The file is read here and not through the server: its log matters most once the server has ended.
func (a verbs) serverLog(ctx context.Context, opt logfile.ReadOptions) error {
	running, err := a.Server(ctx)
	if err != nil {
		return err
	}
	place, known, err := logfile.Recorded(a.State())
	if err != nil {
		return err
	}
	whose := fmt.Sprintf("the server (process %d) logs", running.PID)
	if !running.Serves {
		whose = "the last server logged"
	}
	switch {
	case !known && !running.Serves:
		return app.NotFound("sentinel serve starts one; `sentinel logs RUN` shows the output of a run", "no server has run on %s", a.State())
	case place.Unit != "":
		return app.NotFound("type: "+journalLine(place, opt.Follow), "%s to the journal of systemd, as unit %s", whose, place.Unit)
	case place.File == "":
		return app.NotFound("start it with --log-file FILE, or set logs.file", "%s to its terminal or to another program, not to a file", whose)
	}
	if !running.Serves {
		a.Info("no server runs here: this is what the last one logged in %s", place.File)
		opt.Follow = false
	}
	err = logfile.Read(ctx, place.File, opt, a.showLogLine)
	if errors.Is(err, fs.ErrNotExist) {
		return app.NotFound("", "%s in %s, which does not exist any more", whose, place.File)
	}
	return err
}

// journalLine is the command that shows the log of a unit.
func journalLine(p logfile.Place, follow bool) string {
	words := []string{"journalctl"}
	if p.User {
		words = append(words, "--user")
	}
	words = append(words, "-u", strings.TrimSuffix(p.Unit, ".service"))
	if follow {
		words = append(words, "-f")
	}
	return strings.Join(words, " ")
}

// showLogLine writes a line of the log as it is, but to a terminal or as JSON.
func (a verbs) showLogLine(line []byte) error {
	switch {
	case a.Flags.Output != output.FormatTable:
		if json.Valid(line) { // with logs.format json
			return a.WriteLine(json.RawMessage(line))
		}
		return a.WriteLine(map[string]string{"line": strings.ToValidUTF8(string(line), "\uFFFD")})
	case a.Env.StdoutTerminal:
		return a.Out.Printf("%s\n", termtext.Printed(string(line), bool(a.PaintOut)))
	}
	_, err := a.Out.Writer.Write(append(line, '\n'))
	return err
}

// followTail is how many lines of the log of a server are shown before those that come.
const followTail = 10

// serverLogOptions returns which lines are wanted. Flags about the steps of a run are errors.
func serverLogOptions(cmd *cobra.Command, want outputWanted) (opt logfile.ReadOptions, err error) {
	for _, name := range []string{"step", "iteration", "attempt", "stream", "times", "events", "limit"} {
		if cmd.Flags().Changed(name) {
			return opt, app.NewUsageError(fmt.Sprintf("--%s needs a RUN or NAME", name), "usage: "+cmd.UseLine())
		}
	}
	opt = logfile.ReadOptions{Tail: want.tail, Follow: want.follow}
	if want.follow && !cmd.Flags().Changed("tail") {
		opt.Tail = followTail
	}
	return opt, nil
}
