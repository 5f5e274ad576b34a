package sentinels

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A row is a field of any table.
type row struct {
	object, name, doc, value, example, missing, into string
	aliases, of                                      []string
	written                                          bool
	without                                          func() (restore func()) // removes the row
}

// rowsOf returns the rows of a table.
func rowsOf[T any](object string, t *table[T]) []row {
	var rows []row
	for i, f := range *t {
		rows = append(rows, row{object: object, name: f.name, doc: f.text(), value: f.value, example: f.example, missing: f.missing, into: f.into,
			aliases: f.aliases, of: f.of, written: f.encode != nil,
			without: func() func() {
				before := *t
				*t = slices.Delete(slices.Clone(before), i, i+1)
				return func() { *t = before }
			}})
	}
	return rows
}

// objects are the objects of the format, as FORMAT.md lists them.
var objects = []struct {
	name string
	rows func() []row
	base map[string]string // a valid object
	wrap string            // the definition around an object
}{
	{"definition", func() []row { return rowsOf("definition", &format.definition) }, map[string]string{"name": `"n"`, "steps": `[{"type": "x"}]`}, `%s`},
	{"safety", func() []row { return rowsOf("safety", &format.safety) }, nil, `{"name": "n", "steps": [], "safety": %s}`},
	{"budget", func() []row { return rowsOf("budget", &format.budget) }, nil, `{"name": "n", "steps": [], "budget": %s}`},
	{"concurrency", func() []row { return rowsOf("concurrency", &format.overlap) }, nil, `{"name": "n", "steps": [], "concurrency": %s}`},
	{"input", func() []row { return rowsOf("input", &format.input) }, nil, `{"name": "n", "steps": [], "inputs": {"i": %s}}`},
	{"step", func() []row { return rowsOf("step", &format.step) }, map[string]string{"type": `"x"`}, `{"name": "n", "steps": [%s]}`},
	{"onError", func() []row { return rowsOf("onError", &format.onError) }, nil, `{"name": "n", "steps": [{"type": "x", "onError": %s}]}`},
	{"retry", func() []row { return rowsOf("retry", &format.retry) }, nil, `{"name": "n", "steps": [{"type": "x", "onError": {"retry": %s}}]}`},
	{"loop", func() []row { return rowsOf("loop", &format.loop) }, map[string]string{"type": `"once"`}, `{"name": "n", "steps": [], "safety": {"maxSteps": 1, "timeoutMs": 9}, "loop": %s}`},
	{"trigger", func() []row { return rowsOf("trigger", &format.trigger) }, map[string]string{"type": `"manual"`}, `{"name": "n", "steps": [], "trigger": %s}`},
}

// texts returns definitions with the field under a name, and without it.
func (r row) texts(name string, base map[string]string, wrap string) (with, without string) {
	object := map[string]string{}
	maps.Copy(object, base)
	if r.of != nil {
		object["type"] = `"` + r.of[0] + `"`
	}
	if r.object == "loop" && r.name == "source" {
		object["event"] = `"a"` // needed beside it
	}
	if r.object == "trigger" && r.name != "type" {
		object["type"] = fmt.Sprintf("%q", r.name) // the kind of rowKinds that has the field
	}
	delete(object, r.name)
	without = fmt.Sprintf(wrap, written(object))
	if r.example == object["type"] {
		panic("the example is the default")
	}
	object[name] = r.example
	return fmt.Sprintf(wrap, written(object)), without
}

func written(object map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list = append(list, fmt.Sprintf("%q: %s", name, object[name]))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// rowTypes are two step types without fields.
func rowTypes(t *testing.T) *TypeSet {
	t.Helper()
	set, err := NewTypeSet([]TypeSpec{{Type: "x"}, {Type: "some_text"}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// rowKinds are kinds of triggers: one without a field of its own, and one for each
// field, named like it.
var rowKinds = []TriggerKind{{Name: "manual"}, {Name: "immediate"}, {Name: string(TriggerEvent), Field: TriggerEvent}, {Name: string(TriggerCron), Field: TriggerCron}}

func accepts(t *testing.T, types *TypeSet, text string) bool {
	t.Helper()
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(types, nil, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("https://sentinel.invalid/x.json", doc); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("https://sentinel.invalid/x.json").Validate(value) == nil
}

// TestFieldIsOneRow checks for every row that decoder, encoder, schema, diff, rewrite and
// the hints have the field, and that none of them has it without the row.
func TestFieldIsOneRow(t *testing.T) {
	opt := DecodeOptions{Types: rowTypes(t), Triggers: rowKinds}
	for _, object := range objects {
		for _, r := range object.rows() {
			t.Run(object.name+"."+r.name, func(t *testing.T) {
				if r.object == "step" && r.name == "type" {
					r.example = `"some_text"`
				}
				if r.object == "trigger" && r.name != "type" {
					r.missing = needed // by the kind that has the field, see rowKinds
				}
				if r.value == "" || r.example == "" {
					t.Fatal("the row has no value or example")
				}
				for _, name := range append([]string{r.name}, r.aliases...) {
					with, without := r.texts(name, object.base, object.wrap)
					checkField(t, r, name, with, without, opt)
				}
			})
		}
	}
}

func checkField(t *testing.T, r row, name, with, without string, opt DecodeOptions) {
	t.Helper()
	d, problems := Decode([]byte(with), opt)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", with, problems)
	}
	stored := r.name
	if r.into != "" {
		stored = r.into[strings.LastIndexByte(r.into, '.')+1:]
	}
	kept := r.written || r.into != ""
	if got := bytes.Contains(compact(d), []byte(`"`+stored+`":`)); kept && !got {
		t.Errorf("%s is encoded as %s", with, compact(d))
	}
	if !accepts(t, opt.Types, with) {
		t.Errorf("the schema refuses %s", with)
	}
	base, problems := Decode([]byte(without), opt)
	switch {
	case len(problems) > 0:
		if r.missing == "" && r.name != "name" && r.name != "type" {
			t.Errorf("%s: %v", without, problems)
		}
	case kept != (len(Diff(base, d)) > 0):
		t.Errorf("the changes from %s to %s are %v", without, with, Diff(base, d))
	default:
		got, err := Rewrite([]byte(with), base, opt)
		if again, problems := Decode(got, opt); err != nil || len(problems) > 0 || again.Hash() != base.Hash() {
			t.Errorf("%s was rewritten to %s: %v, %v", with, got, err, problems)
		}
	}

	defer r.without()()
	d, problems = Decode([]byte(with), opt)
	switch {
	case r.object == "trigger": // other keys are options, which are compared with the type
		if d != nil && r.name != "type" && !bytes.Contains(d.Triggers[0].Options, []byte(name)) {
			t.Errorf("without its row, the trigger is %+v", d.Triggers[0])
		}
		return
	case r.object == "step" && r.name == "type": // steps are read by it
		return
	case d != nil || !slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Kind == KindUnknown && (p.Message == fmt.Sprintf("unknown key %q", name)) && !strings.Contains(p.Hint, `"`+name+`"`)
	}):
		t.Errorf("%s is accepted without its row: %v", with, problems)
	}
	if accepts(t, opt.Types, with) {
		t.Errorf("the schema accepts %s without its row", with)
	}
}

// TestGoFieldsHaveRows checks that each Go field of the format is set by a row.
func TestGoFieldsHaveRows(t *testing.T) {
	opt := DecodeOptions{Types: rowTypes(t), Triggers: rowKinds}
	set := map[string]bool{}
	mark := func(v any) {
		value := reflect.ValueOf(v)
		for i := range value.NumField() {
			if !value.Field(i).IsZero() {
				set[value.Type().Name()+"."+value.Type().Field(i).Name] = true
			}
		}
	}
	for _, object := range objects {
		for _, r := range object.rows() {
			with, _ := r.texts(r.name, object.base, object.wrap)
			d, _ := Decode([]byte(with), opt)
			if d == nil {
				continue // reported above
			}
			mark(*d)
			mark(d.Loop)
			mark(d.Safety)
			mark(d.Budget)
			for _, s := range d.Steps {
				mark(s)
				mark(s.OnError)
				mark(s.OnError.Retry)
			}
			for _, trigger := range d.Triggers {
				mark(trigger)
			}
			for _, in := range d.Inputs {
				mark(in)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Definition](), reflect.TypeFor[Step](), reflect.TypeFor[Loop](), reflect.TypeFor[Trigger](),
		reflect.TypeFor[Safety](), reflect.TypeFor[Budget](), reflect.TypeFor[Input](), reflect.TypeFor[OnError](), reflect.TypeFor[RetryPolicy]()} {
		for i := range typ.NumField() {
			switch name := typ.Name() + "." + typ.Field(i).Name; name {
			case "Step.Fields", "Step.Blocks", "Trigger.Options": // of the type
			case "Input.Optional": // false of the row of Required
			default:
				if !set[name] {
					t.Errorf("no row sets %s", name)
				}
			}
		}
	}
}

// TestFormatPage compares the tables of FORMAT.md with the rows. With -update it writes
// them.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for _, object := range objects {
		begin, end := "<!-- keys of "+object.name+" -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("no table for %s", object.name)
			continue
		}
		want = before + begin + keyTable(object.rows()) + end + after
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile("FORMAT.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("run go test ./sentinels -update (-page +rows):\n%s", diff)
	}
}

// keyTable returns the rows as a table of the page. Rows that differ only by name share
// a line.
func keyTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| key | value | meaning |\n|---|---|---|\n")
	for len(rows) > 0 {
		r := rows[0]
		names := ""
		for len(rows) > 0 && rows[0].doc == r.doc && rows[0].value == r.value {
			names += " `" + rows[0].name + "`"
			rows = rows[1:]
		}
		doc := strings.ReplaceAll(r.doc, "|", `\|`)
		if r.aliases != nil {
			doc += " Other names: `" + strings.Join(r.aliases, "` `") + "`."
		}
		if r.missing != "" {
			doc += " Required."
		}
		if r.into != "" {
			doc += " Stored as `" + r.into + "`."
		}
		fmt.Fprintf(&b, "|%s | %s | %s |\n", names, strings.ReplaceAll(r.value, "|", `\|`), strings.TrimSpace(doc))
	}
	return b.String()
}

// TestExamplesAreJSON keeps the examples of rows readable.
func TestExamplesAreJSON(t *testing.T) {
	for _, object := range objects {
		for _, r := range object.rows() {
			if !json.Valid([]byte(r.example)) {
				t.Errorf("%s.%s: %s", r.object, r.name, r.example)
			}
		}
	}
}
