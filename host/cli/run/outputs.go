package run

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// outputWanted is what of the output of a run is shown.
type outputWanted struct {
	step               string // id, address or execution path; empty for all
	iteration, attempt int    // 0 for all
	stream             string
	tail               int
	times, follow      bool
}

// bare reports whether there are no headings.
func (w outputWanted) bare() bool { return w.step != "" && w.attempt > 0 }

// of reports whether an attempt of a step is shown.
func (w outputWanted) of(iteration, attempt int, names ...string) bool {
	return (w.iteration == 0 || w.iteration == iteration) && (w.attempt == 0 || w.attempt == attempt) &&
		(w.step == "" || slices.Contains(names, w.step))
}

// A printed is one execution of a command, as logs/list has it.
type printed struct {
	ExecutionID, Step, Command, State string
	Iteration, Attempt                int
	Bytes, DroppedBytes               int64
	ExitCode                          *int
	Signal                            string
	TimedOut                          bool
	StartedAt                         time.Time
	DurationMs                        int64
}

// attemptKey names an attempt of a step.
type attemptKey struct {
	iteration int
	path      string
	attempt   int
}

// outputView shows the output of a run.
type outputView struct {
	app     verbs
	session *app.Session
	run     runtime.RunInfo
	want    outputWanted

	executions map[attemptKey][]printed
	shown      map[string]bool  // executions, and turns of models
	read       map[string]int64 // bytes of executions that were read when the connection broke
	any        bool             // there was something to show
	headed     attemptKey       // that the last heading is of
}

// outputs shows what the commands of a run have printed and, with follow, what they print until it ends.
func (a verbs) outputs(ctx context.Context, word string, want outputWanted) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	info, err := a.FindRun(ctx, s, word, true)
	if err != nil {
		return err
	}
	v := &outputView{app: a, session: s, run: info, want: want, shown: map[string]bool{}, read: map[string]int64{}}
	if want.follow && info.Live && !info.Status.Final() {
		return v.follow(ctx)
	}
	v.want.follow = false
	if err := v.show(ctx); err != nil {
		return err
	}
	if !v.any {
		return v.nothing()
	}
	return nil
}

func (v *outputView) nothing() error {
	if v.want.step == "" && v.want.iteration == 0 && v.want.attempt == 0 {
		v.app.Info("run %s has printed nothing: it has executed no command and no model, or what they printed is no longer kept", v.run.ID)
		return nil
	}
	return app.NotFound(string("`sentinel trace "+output.ShortID(v.run.ID)+"` shows the steps and attempts"), "run %s has no output of that step and attempt", v.run.ID)
}

// follow shows what there is again and again until the run is over.
func (v *outputView) follow(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	cursor, err := v.session.Cursor(ctx)
	if err != nil {
		return err
	}
	news, ended := make(chan struct{}, 1), make(chan error, 1)
	begun := map[string]bool{} // executions that have printed
	go func() {
		ended <- v.session.Watch(ctx, v.session.WatchOptions(cursor, "run:"+string(v.run.ID)), func(m client.Message) error {
			if e, ok := readEvent(m.Event); ok && e.Event.Partial() {
				if e.Event != runtime.OnOutput || begun[e.Label] {
					return nil // all is read again for news, and the output itself is followed
				}
				begun[e.Label] = true // it may have had no record yet when its call began
			}
			select {
			case news <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	for {
		over, err := v.step(ctx, news, ended)
		if v.app.hostEnded(v.session, err) {
			return nil
		}
		if !over && abi.CodeOf(err) == abi.Unavailable {
			// A server may be restarted. The watch connects again by itself, and ends if it cannot.
			select {
			case <-time.After(reconnectPause):
				continue
			case err = <-ended:
			}
		}
		if over || err != nil {
			return err
		}
	}
}

// reconnectPause is how long nothing is asked of a server that has not answered.
const reconnectPause = 500 * time.Millisecond

// step shows what there is, and waits for news unless the run is over.
func (v *outputView) step(ctx context.Context, news <-chan struct{}, ended <-chan error) (over bool, err error) {
	info, err := v.session.RunInfo(ctx, v.run.ID) // before its output is read, so that none is missed
	if err != nil {
		return false, err
	}
	if err := v.show(ctx); err != nil || info.Status.Final() {
		return err == nil, err
	}
	select {
	case <-news:
		return false, nil
	case err := <-ended:
		return true, err
	}
}

// show shows what was not shown yet, in the order of the trace. Before it comes what iterations have
// printed that the trace does not have any more.
func (v *outputView) show(ctx context.Context) error {
	iterations, err := v.trace(ctx)
	if err != nil {
		return err
	}
	order, err := v.list(ctx)
	if err != nil {
		return err
	}
	first := 0
	if len(iterations) > 0 {
		first = iterations[0].Number
	}
	for _, key := range order {
		if key.iteration < first {
			if err := v.attempt(ctx, key, nil, nil); err != nil {
				return err
			}
		}
	}
	for _, it := range iterations {
		if err := v.steps(ctx, it.Number, it.Steps); err != nil {
			return err
		}
	}
	return nil
}

// trace reads the trace of the run.
func (v *outputView) trace(ctx context.Context) (list []trace.Iteration, err error) {
	params := map[string]any{"run": v.run.ID}
	if v.want.iteration > 0 {
		params["iteration"] = v.want.iteration
	}
	tr, err := v.session.Trace(ctx, params)
	if abi.CodeOf(err) == abi.NotFound { // of a run without an iteration
		return nil, nil
	}
	return tr.Iterations, err
}

// list reads which commands were executed; order has their attempts by the first start.
func (v *outputView) list(ctx context.Context) (order []attemptKey, err error) {
	var all []printed
	for before := ""; ; {
		var page struct {
			Executions []printed
			Next       string
		}
		params := map[string]any{"run": v.run.ID, "limit": 200}
		if before != "" {
			params["before"] = before
		}
		if err := v.session.Call(ctx, "logs/list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Executions...)
		if before = page.Next; before == "" {
			break
		}
	}
	v.executions = map[attemptKey][]printed{}
	for _, e := range slices.Backward(all) {
		key := attemptKey{e.Iteration, e.Step, e.Attempt}
		if v.executions[key] == nil {
			order = append(order, key)
		}
		v.executions[key] = append(v.executions[key], e)
	}
	return order, nil
}

func (v *outputView) steps(ctx context.Context, iteration int, steps []*trace.Step) error {
	for _, s := range steps {
		for _, a := range s.Attempts {
			if v.want.of(iteration, a.Number, s.Path, s.Address, s.ID) {
				if err := v.attempt(ctx, attemptKey{iteration, s.Path, a.Number}, s, a); err != nil {
					return err
				}
			}
			if err := v.steps(ctx, iteration, a.Steps); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt shows one attempt of a step, of which the trace may know nothing.
func (v *outputView) attempt(ctx context.Context, key attemptKey, s *trace.Step, a *trace.Attempt) error {
	if s == nil && !v.want.of(key.iteration, key.attempt, key.path) {
		return nil
	}
	if a != nil && v.want.stream == "" {
		if err := v.conversation(key, s, a); err != nil {
			return err
		}
	}
	for _, e := range v.executions[key] {
		if s != nil && s.Type == "llm" && v.want.stream == "" {
			break // the conversation has what the tools answered
		}
		if v.shown[e.ExecutionID] {
			continue
		}
		v.shown[e.ExecutionID] = true
		if err := v.heading(key, s); err != nil {
			return err
		}
		if err := v.copy(ctx, e, s != nil && !s.Ended); err != nil {
			return err
		}
	}
	return nil
}

// heading writes the line above an attempt, once.
func (v *outputView) heading(key attemptKey, s *trace.Step) error {
	v.any = true
	if v.want.bare() || v.headed == key {
		return nil
	}
	v.headed = key
	head := termtext.Sprintf("==> #%d %s", key.iteration, key.path)
	if s != nil {
		head += termtext.Sprintf(" %s", s.Type)
		if name := cmp.Or(s.Name, s.ID); name != "" {
			head += " " + output.Clip(name, 60)
		}
	}
	if key.attempt > 1 {
		head += termtext.Sprintf("  attempt %d", key.attempt)
	}
	return v.app.Out.Printf("%s\n", v.app.PaintOut.Strong(head))
}

// copy writes the output of an execution. If its step is open, what has ended the run has ended it too.
func (v *outputView) copy(ctx context.Context, e printed, open bool) error {
	from, err := v.session.Output(ctx, client.OutputOptions{
		Run: v.run.ID, Step: e.Step, Execution: e.ExecutionID, Stream: v.want.stream, Tail: v.want.tail, Times: v.want.times, Follow: v.want.follow,
	})
	if abi.CodeOf(err) == abi.NotFound { // the bounds took it meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	ends := &endings{to: v.app.Out.Writer}
	rest := &unread{from: from, skip: v.read[e.ExecutionID]}
	if v.app.Env.StdoutTerminal {
		err = v.toTerminal(rest)
	} else {
		_, err = io.CopyBuffer(ends, rest, make([]byte, copyBuffer))
	}
	if abi.CodeOf(err) == abi.Unavailable && v.session.Serves() {
		v.shown[e.ExecutionID] = false
		if v.want.tail == 0 { // the last lines are others then
			v.read[e.ExecutionID] = rest.bytes
		}
		if ends.open {
			if err := v.app.Out.Printf("\n"); err != nil {
				return err
			}
		}
		v.app.Warn("the connection to the server broke: waiting until it is back")
	}
	if err != nil || v.want.bare() {
		return err
	}
	if e.State == "running" && v.want.follow {
		if err := v.session.Call(ctx, "code/shell/status", map[string]any{"executionId": e.ExecutionID}, &e); err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
	}
	if ends.open {
		if err := v.app.Out.Printf("\n"); err != nil {
			return err
		}
	}
	if e.DroppedBytes > 0 {
		if err := v.line(termtext.Sprintf("[%d bytes of it are not kept]", e.DroppedBytes)); err != nil {
			return err
		}
	}
	switch {
	case e.State == "running":
		return nil
	case e.State == "lost":
		return v.line("[the host ended while it ran: its exit is not known]")
	case e.TimedOut:
		return v.line("[ended at its time limit]")
	case e.Signal != "" && open && app.LimitOf(v.run) != "":
		return v.line(termtext.Sprintf("[ended by %s]", app.LimitOf(v.run)))
	case e.Signal != "":
		return v.line(termtext.Sprintf("[ended by %s]", e.Signal))
	case e.ExitCode != nil && *e.ExitCode != 0:
		return v.line(termtext.Sprintf("[exit code %d]", *e.ExitCode))
	}
	return nil
}

func (v *outputView) line(text termtext.Text) error {
	return v.app.Out.Printf("%s\n", v.app.PaintOut.Dim(text))
}

// toTerminal writes what a program has printed line by line, so that it cannot steer the terminal. Below
// headings it is indented: a program could otherwise print one.
func (v *outputView) toTerminal(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	indent := "  "
	if v.want.bare() {
		indent = ""
	}
	for {
		line, err := in.ReadString('\n')
		if len(line) > 0 {
			if err := v.app.Out.Printf("%s%s\n", indent, termtext.Printed(strings.TrimRight(line, "\r\n"), bool(v.app.PaintOut))); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyBuffer is how many bytes of an output are copied at a time: few calls of the system for much
// output.
const copyBuffer = 512 << 10

// unread reads an output without its first bytes, which were read before.
type unread struct {
	from        io.Reader
	skip, bytes int64 // bytes counts those that were skipped, too
}

func (u *unread) Read(p []byte) (int, error) {
	if u.bytes < u.skip {
		n, err := io.CopyN(io.Discard, u.from, u.skip-u.bytes)
		u.bytes += n
		if err != nil {
			return 0, err
		}
	}
	n, err := u.from.Read(p)
	u.bytes += int64(n)
	return n, err
}

// endings passes text on and remembers whether it ended within a line.
type endings struct {
	to   io.Writer
	open bool
}

func (e *endings) Write(p []byte) (int, error) {
	if len(p) > 0 {
		e.open = p[len(p)-1] != '\n'
	}
	return e.to.Write(p)
}

// maxShownText bounds a text of a conversation that is shown, in bytes.
const maxShownText = 4 << 10

// conversation shows what a model was asked and said in an attempt, and which tools it called.
func (v *outputView) conversation(key attemptKey, s *trace.Step, a *trace.Attempt) error {
	for _, c := range a.Calls {
		id := string(abi.FuncLLM) + "\x00" + key.path + "\x00" + c.Start.String()
		if !c.Ended || v.shown[id] {
			continue
		}
		var lines []said
		switch c.Function {
		case abi.FuncLLM:
			lines = turnOf(c)
		case abi.FuncCommand:
			lines = toolOf(c)
		}
		for _, l := range lines {
			v.shown[id] = true
			if err := v.heading(key, s); err != nil {
				return err
			}
			text := textcut.Mark(strings.TrimRight(l.text, "\n"), maxShownText)
			if err := v.app.Out.Printf("%s %s\n", v.app.PaintOut.Dim(termtext.Text(l.who+":")), termtext.Block(text, "    ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// A said is a part of a conversation.
type said struct {
	who  string // constant
	text string
}

// turnOf returns what a turn of a model adds to the conversation.
func turnOf(c *trace.Call) (lines []said) {
	var asked struct {
		System string
		Append []struct {
			Role    string
			Content json.RawMessage
		}
	}
	var reply struct {
		Text      string
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	_ = json.Unmarshal(c.Request, &asked) // what cannot be read is not shown; trace -v has it
	_ = json.Unmarshal(c.Result, &reply)
	if asked.System != "" && len(asked.Append) > 0 && asked.Append[0].Role != "tool" {
		lines = append(lines, said{"system", asked.System})
	}
	for _, m := range asked.Append {
		if m.Role != "tool" { // the call of the tool has it
			lines = append(lines, said{"asked", textOf(m.Content)})
		}
	}
	if reply.Text != "" {
		lines = append(lines, said{"model", reply.Text})
	}
	for _, t := range reply.ToolCalls {
		lines = append(lines, said{"tool call", t.Name + " " + string(t.Arguments)})
	}
	if c.Error != nil {
		lines = append(lines, said{"error", c.Error.Message})
	}
	return lines
}

// toolOf returns the result of a tool that a model called.
func toolOf(c *trace.Call) []said {
	var request struct{ By string }
	if json.Unmarshal(c.Request, &request) != nil || request.By != "model" {
		return nil
	}
	if c.Error != nil {
		return []said{{"tool error", c.Label + ": " + c.Error.Message}}
	}
	var result struct{ Output, Content, Text *string }
	_ = json.Unmarshal(c.Result, &result) // another form is shown as JSON
	for _, text := range []*string{result.Output, result.Content, result.Text} {
		if text != nil {
			return []said{{"tool result", c.Label + ": " + *text}}
		}
	}
	return []said{{"tool result", c.Label + ": " + string(c.Result)}}
}

// textOf returns a text, or any other value as JSON.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
