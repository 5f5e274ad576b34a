package loop

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// defaultLimit limits the iterations of a loop without count, each and
// maxIterations.
const defaultLimit = 10_000

// A plan is the fields of the step.
type plan struct {
	kind       string    // one of kinds, or empty
	iterations int64     // of count and each; -1 if a check decides
	limit      int64     // 0 is no limit
	check      string    // of while and until
	each       sdk.Value // a list, or absent for the range that begins at from
	from       int64
	made       bool   // each was made by an expression or a pattern, so a checkpoint keeps it
	lines      string // the execution whose lines each has; empty for a list
	concurrent int64  // 0 is one after the other, with the variables of the step
	onItem     string // what happens after an item that fails; empty if nothing is said
	as         string
	indexAs    string
}

// run returns {iterations, output, reason}: the number of iterations, the output of
// the last one, and the field that ended the loop.
func run(c *sdk.Context) (sdk.Value, error) {
	p, err := readPlan(c)
	if err != nil {
		return sdk.Value{}, err
	}
	if p.concurrent > 0 || p.onItem != "" {
		return p.items(c)
	}
	// A checkpoint after each iteration limits a replay to one iteration.
	done, last := c.State.Get("passes").IntOr(0), c.State.Get("last")
	ended := c.State.Get("ended").BoolOr(false)
	next, since := c.State.Get("line").IntOr(0), int64(0)
	for !ended {
		var item sdk.Value
		more, err := p.more(c, done)
		if err == nil && p.lines != "" {
			item, next, more, err = p.line(c, next)
		}
		if err != nil {
			return sdk.Value{}, err
		}
		if !more {
			break
		}
		if p.limit > 0 && done >= p.limit {
			return sdk.Value{}, p.limitError()
		}
		if last, err = p.iterate(c, done, item); err != nil {
			return sdk.Value{}, err
		}
		done++
		if p.kind == "until" {
			if _, ended, err = c.Eval(p.check, sdk.Value{}); err != nil {
				return sdk.Value{}, err
			}
		}
		if since++; p.made && since <= done/8 {
			continue // each checkpoint has the list again
		}
		if err := c.Checkpoint(p.state(done, last, ended, next)); err != nil {
			return sdk.Value{}, err
		}
		since = 0
	}
	if !last.Exists() {
		last = sdk.Null()
	}
	return sdk.Object(
		sdk.F("iterations", sdk.Int(done)),
		sdk.F("output", last),
		sdk.F("reason", sdk.String(p.kind)),
	), nil
}

// state returns the state of a checkpoint. next is the number of the line to read on at.
func (p plan) state(done int64, last sdk.Value, ended bool, next int64) sdk.Value {
	v := sdk.Object(sdk.F("passes", sdk.Int(done)), sdk.F("last", last))
	if ended {
		v = v.With("ended", sdk.Bool(true))
	}
	if p.lines != "" {
		v = v.With("line", sdk.Int(next))
	}
	if p.made {
		v = v.With("list", p.each)
	}
	return v
}

// more reports, before each iteration, whether it must run after done ones.
func (p plan) more(c *sdk.Context, done int64) (bool, error) {
	if p.kind == "while" {
		_, yes, err := c.Eval(p.check, sdk.Object(sdk.F(p.indexAs, sdk.Int(done))))
		return yes, err
	}
	return p.iterations < 0 || done < p.iterations, nil
}

// iterate executes the steps of iteration i. item is the line of each with linesOf.
func (p plan) iterate(c *sdk.Context, i int64, item sdk.Value) (sdk.Value, error) {
	if c.Steps("steps") == 0 {
		return sdk.Null(), nil
	}
	return c.Block("steps", p.vars(i, item))
}

// vars returns the variables of iteration i.
func (p plan) vars(i int64, item sdk.Value) sdk.Value {
	vars := sdk.Object(sdk.F(p.indexAs, sdk.Int(i)))
	switch {
	case p.lines != "":
		return vars.With(p.as, item)
	case p.kind == "each":
		return vars.With(p.as, p.item(i))
	}
	return vars
}

// item returns item i of each.
func (p plan) item(i int64) sdk.Value {
	if p.each.Exists() {
		return p.each.At(int(i))
	}
	return sdk.Int(p.from + i)
}

// readLines reads lines of an execution's output.
const readLines = "logs/read"

// line returns the line of the standard output that has the number next or follows it, the number to read on at, and
// whether there is one. If a line anywhere in the output is not kept, the first one is an error already: the loop could
// only do a part of its work.
func (p plan) line(c *sdk.Context, next int64) (line sdk.Value, then int64, ok bool, err error) {
	text := ""
	for {
		page, err := c.Command(readLines, sdk.Object(
			sdk.F("executionId", sdk.String(p.lines)), sdk.F("stream", sdk.String("stdout")),
			sdk.F("offset", sdk.Int(next)), sdk.F("limit", sdk.Int(1)),
		))
		if err != nil {
			return sdk.Value{}, 0, false, err
		}
		if !page.Get("finished").BoolOr(false) {
			return sdk.Value{}, 0, false, sdk.Permanent(sdk.BadField("each", "execution "+p.lines+" goes on: wait for its end with a watch step first"))
		}
		if n := page.Get("missing").IntOr(0); n > 0 {
			e := sdk.Fail(sdk.CodeLimit, "loop: "+strconv.FormatInt(n, 10)+" lines of the output of "+p.lines+" are not kept")
			e.Field, e.Hint = "each", "an output of more than 32 MiB is kept in part: write it to a file, and loop over parts of that"
			return sdk.Value{}, 0, false, sdk.Permanent(e)
		}
		next = page.Get("next").IntOr(next)
		lines := page.Get("lines")
		if lines.Len() == 0 {
			return sdk.String(text), next, text != "", nil // the last line may have no end
		}
		one := lines.At(0)
		text += one.Get("text").StringOr("")
		if !one.Get("open").BoolOr(false) {
			return sdk.String(text), next, true, nil
		}
	}
}

// limitError is the error of a loop that reached its limit before its end. A
// success would hide that the work is unfinished.
func (p plan) limitError() error {
	what := "the loop has no other end"
	switch p.kind {
	case "while":
		what = "while is still true"
	case "until":
		what = "until is still false"
	case "count", "each":
		what = "want " + strconv.FormatInt(p.iterations, 10) + " iterations"
	}
	e := sdk.Fail(sdk.CodeLimit, "loop: maxIterations "+strconv.FormatInt(p.limit, 10)+" reached: "+what)
	e.Field = "maxIterations"
	return sdk.Permanent(e)
}

// readPlan reads and checks the fields of the step.
func readPlan(c *sdk.Context) (plan, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return plan{}, err
	}
	p := plan{iterations: -1, as: c.Field("as").StringOr("item"), indexAs: c.Field("indexAs").StringOr("index")}
	for _, name := range kinds {
		if c.Field(name).Given() {
			p.kind = name
		}
	}
	var err error
	switch p.kind {
	case "count":
		p.iterations, err = c.IntField("count", 0, 0)
	case "each":
		p.each = c.Field("each")
		switch p.each.Kind() {
		case sdk.KindList:
			p.iterations = int64(p.each.Len())
		case sdk.KindObject:
			err = p.readEach(c)
		default:
			err = sdk.BadField("each", "want a list, got "+p.each.Kind().String())
		}
	case "while", "until":
		p.check, err = c.StringField(p.kind)
	}
	if err != nil {
		return plan{}, err
	}
	if p.concurrent, err = c.IntField("maxConcurrent", 1, 0); err != nil {
		return plan{}, err
	}
	p.onItem = c.Field("onItemError").StringOr("")
	fallback := int64(0)
	if p.iterations < 0 && p.lines == "" {
		fallback = defaultLimit
	}
	p.limit, err = c.IntField("maxIterations", 1, fallback)
	return p, err
}

// listFiles finds files by a glob, at most maxFiles.
const (
	listFiles = "fs/list"
	maxFiles  = 2000
)

// readEach reads the forms of each that are an object.
func (p *plan) readEach(c *sdk.Context) error {
	form := p.each
	if p.lines = form.Get("linesOf").StringOr(""); p.lines != "" {
		return nil
	}
	if form.Get("from").Given() {
		from, ok := form.Get("from").AsInt()
		to, whole := form.Get("to").AsInt()
		if !ok || !whole {
			return sdk.Permanent(sdk.BadField("each", "want whole numbers in from and to"))
		}
		p.each, p.from, p.iterations = sdk.Value{}, from, max(0, to-from+1)
		return nil
	}
	p.made, p.each = true, c.State.Get("list")
	if !p.each.Exists() {
		var err error
		if p.each, err = makeList(c, form); err != nil {
			return err
		}
	}
	p.iterations = int64(p.each.Len())
	return nil
}

// makeList returns the list of an expression or of a pattern of files.
func makeList(c *sdk.Context, form sdk.Value) (sdk.Value, error) {
	if source := form.Get("expr"); source.Given() {
		list, err := c.EvalValue(source.StringOr(""))
		if err == nil && list.Kind() != sdk.KindList {
			err = sdk.Permanent(sdk.BadField("each", "want an expression whose value is a list, got "+list.Kind().String()))
		}
		return list, err
	}
	found, err := c.Command(listFiles, sdk.Object(sdk.F("pattern", form.Get("files")), sdk.F("maxResults", sdk.Int(maxFiles))))
	if err != nil {
		return sdk.Value{}, err
	}
	if found.Get("truncated").BoolOr(false) {
		e := sdk.Fail(sdk.CodeLimit, "loop: more than "+strconv.Itoa(maxFiles)+" files match "+form.Get("files").String())
		e.Field, e.Hint = "each", `use a narrower pattern, or a step of type shell that lists them and "each": {"linesOf": ...}`
		return sdk.Value{}, sdk.Permanent(e)
	}
	if note := found.Get("note").StringOr(""); note != "" {
		c.Warn("each: " + note)
	}
	return found.Get("files"), nil
}
