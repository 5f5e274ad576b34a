package sentinels

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// DecodeOptions limit what a definition may contain. The zero value accepts every
// step type and every kind of trigger, and does not check their fields.
type DecodeOptions struct {
	File  string   // file name in problems
	Types *TypeSet // known step types; nil accepts every type, does not check fields and does not infer a missing type
	// UnknownType explains why a step type that is known is not in Types, and what to do
	// about it: a problem of [KindAbsent]. Default, also for an empty message: "unknown
	// step type".
	UnknownType func(t StepType) (message, hint string)
	// AllowAbsent accepts steps of the types that UnknownType explains. Their own fields
	// stay as written. Such a definition can be stored, and executed when the type is
	// there and it is decoded again.
	AllowAbsent bool
	// Triggers are the known kinds of triggers. Default nil: every type is accepted,
	// and all other keys of a trigger are its Options.
	Triggers []TriggerKind

	// The checks validate texts in other languages; nil skips the check. The
	// error's text becomes the problem's message. If the error has a method
	// HintText() string, that is the problem's hint. An error that [ErrUnchecked] is in ends the checks
	// of expressions: it is one problem of [KindLimit], so that no text is valid that was not checked whole.
	CheckExpression func(source string) error
	CheckTrigger    func(t Trigger) error // the options of a trigger whose type is in Triggers
}

// ErrUnchecked is in the error of a check that has not looked at the text.
var ErrUnchecked = errors.New("not checked")

// maxDefinitions is how deep definitions may be nested.
const maxDefinitions = 8

// Decode reads the text of a definition or of a recipe: JSON, with comments and
// trailing commas. It reports every error, and returns a definition only if
// there is none.
func Decode(src []byte, opt DecodeOptions) (*Definition, Problems) {
	r := Inspect(src, opt)
	errs := r.Problems.only(func(p Problem) bool { return p.Kind != KindWarning })
	if len(errs) > 0 {
		return nil, errs
	}
	return r.Definition, nil
}

// A Report is what [Inspect] finds.
type Report struct {
	// Definition is the definition as far as it could be read, so that further checks can
	// look for other problems; nil if the text is not JSON. A step whose type is misspelt
	// has the type that was probably meant. It is not for storing if there are problems.
	Definition *Definition
	Problems   Problems

	root   *node
	types  *TypeSet
	broken map[int]bool
}

// Inspect is [Decode] for callers that look for all problems of a text.
func Inspect(src []byte, opt DecodeOptions) Report {
	d, root := newDecoder(src, opt)
	d.broken = make(map[int]bool)
	r := Report{root: root, types: opt.Types, broken: d.broken}
	if root != nil {
		def := d.definition(root)
		r.Definition = &def
	}
	r.Problems = d.finish()
	return r
}

// BrokenStep reports whether the step at a path has problems in its own fields, so that
// its plugin cannot be asked about them.
func (r *Report) BrokenStep(path string) bool {
	return len(r.broken) > 0 && r.broken[r.root.Find(path, r.types.otherNames).Start]
}

// Lenient returns the definition of a text that was stored, with step types and fields of
// steps that are not known any more as they are written; nil if it is not JSON. An edit
// can be made on it, but it cannot be executed.
func Lenient(src []byte, opt DecodeOptions) *Definition {
	d, root := newDecoder(src, opt)
	if root == nil {
		return nil
	}
	d.lenient = true
	def := d.definition(root)
	return &def
}

// DecodeStep reads a single step, for the command step/add. It cannot find the
// problems that involve other steps, such as a duplicate id: encode the edited
// definition and decode it again to find those.
func DecodeStep(src []byte, opt DecodeOptions) (*Step, Problems) {
	d, root := newDecoder(src, opt)
	var step Step
	if root != nil {
		step = d.step(root)
	}
	if problems := d.finish(); len(problems) > 0 {
		return nil, problems
	}
	return &step, nil
}

// A decoder reads one definition. Each nested definition has its own decoder; all
// decoders of a text share one decodeState.
type decoder struct {
	*decodeState
	label   string            // the name of a definition that has none
	depth   int               // number of definitions around this one
	ids     map[string]int    // step ids and the offsets of their values
	outputs []output          // every outputTo so far
	recipe  bool              // the file is a recipe: it has "pipeline"
	seen    map[string]member // keys of the definition, by stored name
}

// output is one outputTo and the node it comes from.
type output struct {
	name string
	at   *node
}

// decodeState is shared by the decoders of all definitions in a text.
type decodeState struct {
	opt      DecodeOptions
	src      *source
	problems Problems
	broken   map[int]bool // offsets of the steps with problems in their own fields; nil if not wanted
	lenient  bool         // keep what is not known as it is written
	stopped  bool         // the checks of expressions have ended with ErrUnchecked, which is among problems
}

// newDecoder parses text and returns a decoder for it. The node is nil if the
// text is not JSON.
func newDecoder(text []byte, opt DecodeOptions) (*decoder, *node) {
	src, problems := parseDefinition(opt.File, text)
	return &decoder{decodeState: &decodeState{opt: opt, src: src, problems: problems}, ids: make(map[string]int)}, src.Root
}

// finish returns the problems sorted by position: nested definitions and schema
// checks add theirs out of order.
func (s *decodeState) finish() Problems {
	s.problems.sort()
	return s.problems
}

// hints reports whether the next problem gets a hint that takes time.
func (s *decodeState) hints() bool { return len(s.problems) < MaxProblems }

// addAt reports a problem at an offset that is not the start of a value, such as
// that of a key.
func (s *decodeState) addAt(offset int, path string, kind Kind, hint, message string) {
	switch {
	case len(s.problems) > maxFound:
		return
	case len(s.problems) == maxFound:
		kind, hint, message = KindLimit, "", tooMany
	}
	s.problems = append(s.problems, s.src.problem(offset, path, kind, hint, message))
}

// add reports a problem at a value.
func (s *decodeState) add(n *node, kind Kind, hint, format string, args ...any) {
	s.addAt(n.Start, n.Path(), kind, hint, fmt.Sprintf(format, args...))
}

// wrongType reports a value of another type than want. Its hint is the value in the form
// that is wanted, or says that a reference is in a field that is read before there are
// variables.
func (s *decodeState) wrongType(n *node, want string) {
	hint := formHint(n, wantedTypes(want)...)
	if n.Kind == '"' && reference.Contains(n.Text) {
		hint = "a $reference is not resolved here"
	}
	s.add(n, KindType, hint, "is %s, want %s", n.TypeName(), want)
}

// expect reports a problem and returns false if n is not of the kind; name is how
// the message calls the kind.
func (s *decodeState) expect(n *node, kind byte, name string) bool {
	if n.Kind != kind {
		s.wrongType(n, name)
	}
	return n.Kind == kind
}

// text reads a string, which may be empty. Most fields treat empty as missing.
func (s *decodeState) text(n *node) (string, bool) {
	return n.Text, s.expect(n, '"', "a string")
}

// nonEmptyText reads a string and reports one that is empty or only white space.
func (s *decodeState) nonEmptyText(n *node) (string, bool) {
	text, ok := s.text(n)
	if ok && strings.TrimSpace(text) == "" {
		s.add(n, KindValue, "", "is empty")
		return "", false
	}
	return text, ok
}

// maxInteger keeps milliseconds within what a time.Duration can hold.
const maxInteger = 1_000_000_000_000

// integer reads a whole number of at least least. It accepts only digits: 1e3 and
// 5.0 are usually mistakes, and every reader of the stored form would have to
// support them.
func (s *decodeState) integer(n *node, least int64) (int64, bool) {
	if !s.expect(n, '0', "a whole number") {
		return 0, false
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case err != nil && strings.ContainsAny(n.Text, ".eE"):
		s.add(n, KindType, "", "is %s, want a whole number", n.Text)
	case err != nil || i > maxInteger:
		s.add(n, KindValue, "", "is %s, more than %d", n.Text, int64(maxInteger))
	case i < least:
		s.add(n, KindValue, "", "is %d, want at least %d", i, least)
	default:
		return i, true
	}
	return 0, false
}

// choice reads one of a fixed list of words, ignoring case.
func (s *decodeState) choice(n *node, choices []string) (string, bool) {
	text, ok := s.text(n)
	if !ok {
		return "", false
	}
	if c, ok := equalFold(text, choices); ok {
		return c, true
	}
	hint := ""
	if s.hints() {
		hint = didYouMean(text, choices)
	}
	s.add(n, KindUnknown, hint, "unknown value %q", text)
	return "", false
}

// unknownKey reports a key that does not exist. kinds says what the object is, for words
// of other systems; see otherWords. Behind [MaxProblems] an unknown key has no hint:
// searching for similar names takes more time than the rest of decoding.
func (s *decodeState) unknownKey(m member, kinds, known []string, hidden ...string) {
	hint := ""
	if s.hints() {
		if _, spelling := equalFold(m.Name, known); !spelling {
			hint = s.otherWordHint(m.Name, m.Value, kinds...)
		}
		hint = cmp.Or(hint, didYouMean(m.Name, known, hidden...))
	}
	s.addAt(m.Start, m.Value.Path(), KindUnknown, hint, fmt.Sprintf("unknown key %q", m.Name))
}

// recordKey adds a key to seen. It reports a problem and returns false if the field
// was given before, under this or another of its names.
func (s *decodeState) recordKey(seen map[string]member, name string, m member) bool {
	if before, duplicate := seen[name]; duplicate {
		s.addAt(m.Start, m.Value.Path(), KindDuplicate, "remove one of them",
			fmt.Sprintf("%q and %q are the same field", before.Name, m.Name))
		return false
	}
	seen[name] = m
	return true
}

// expression reads a condition and checks it. In a recipe, "$" is added to
// variables that are written without it.
func (d *decoder) expression(n *node) (string, bool) {
	if expr := expressionOf(n); expr != nil {
		d.add(n, KindType, "write "+quoted(expr.Text), `is an object: an expression stands here without {"expr": ...}`)
		return "", false
	}
	text, ok := d.nonEmptyText(n)
	if !ok {
		return "", false
	}
	if d.recipe {
		names := make([]string, 0, len(d.outputs))
		for _, o := range d.outputs {
			names = append(names, o.name)
		}
		text = reference.MarkVariables(text, func(name string) bool {
			return slices.Contains(names, name) || slices.Contains(Reserved, name)
		})
		n.Text = text
	}
	if d.opt.CheckExpression != nil && !d.stopped {
		if err := d.opt.CheckExpression(text); err != nil {
			hint := ""
			if h := (interface{ HintText() string })(nil); errors.As(err, &h) {
				hint = h.HintText()
			}
			if d.stopped = errors.Is(err, ErrUnchecked); d.stopped {
				d.add(n, KindLimit, hint, "%s", err)
				return "", false
			}
			if own := statusStep(n, true); own != "" {
				hint = own
			} else if own := d.ownExpression(text); own != "" {
				hint = "write " + own
			}
			d.add(n, KindExpression, hint, "%s", err)
			return "", false
		}
	}
	return text, true
}

// ownExpression returns an expression that has a form of other systems as it is written
// here: without braces around a variable, and with $steps for an id that has a dash. It
// returns "" if there is nothing to change.
func (d *decoder) ownExpression(text string) string {
	own := text
	if strings.Contains(own, "{{") {
		own = withoutTemplate(own)
	}
	own = dashedPattern.ReplaceAllStringFunc(own, func(ref string) string {
		id, rest := dashedID(ref, func(id string) bool { _, known := d.ids[id]; return known })
		if id == "" {
			return ref
		}
		return `$steps["` + id + `"]` + rest
	})
	if own == text {
		return ""
	}
	return own
}

// dashedPattern matches $build-it.exitCode, which would be the id of a step.
var dashedPattern = lazyregexp.New(`\$[A-Za-z_]\w*(?:-\w+)+(?:\??\.[A-Za-z_]\w*|\[[0-9]+\])*`)

// dashedID divides a match of dashedPattern into the longest id that is known and the rest;
// id is "" if there is none.
func dashedID(ref string, known func(id string) bool) (id, rest string) {
	end := strings.IndexAny(ref, ".?[")
	if end < 0 {
		end = len(ref)
	}
	for at := end; at > 0; at = strings.LastIndexByte(ref[:at], '-') {
		if id := ref[1:at]; strings.Contains(id, "-") && known(id) {
			return id, ref[at:]
		}
	}
	return "", ""
}
