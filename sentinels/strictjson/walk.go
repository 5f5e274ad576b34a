package strictjson

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EachMember calls f for the members of an object, in order, until f returns false.
// name is the key as written, with its quotes; both are parts of object. It builds no
// tree, so that it suits values of any size. An object that is not valid JSON ends the
// calls at the mistake.
func EachMember(object []byte, f func(name, value []byte) bool) {
	w := open(object, '{')
	defer w.close()
	for w.next() {
		name := w.value
		if !w.next() || !f(name, w.value) {
			return
		}
	}
}

// EachItem calls f for the items of an array, as [EachMember].
func EachItem(array []byte, f func(value []byte) bool) {
	w := open(array, '[')
	defer w.close()
	for w.next() && f(w.value) {
	}
}

// A walker reads the values within one array or object.
type walker struct {
	text  []byte
	in    bytes.Buffer
	d     jsontext.Decoder
	ended bool
	value []byte // read last
}

// walkers keeps decoders, because one is several times larger than most values.
var walkers = sync.Pool{New: func() any { return new(walker) }}

// maxKept is the length in bytes of a text that an unused decoder may keep.
const maxKept = 16 << 10

// walking accepts what [Check] refuses but encoding/json reads.
var walking = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// open returns a walker behind the opening bracket of a value. It is at its end if the
// value has another kind.
func open(text []byte, bracket jsontext.Kind) *walker {
	w := walkers.Get().(*walker)
	w.text, w.in = text, *bytes.NewBuffer(text)
	w.d.Reset(&w.in, walking)
	token, err := w.d.ReadToken()
	w.ended = err != nil || token.Kind() != bracket
	return w
}

func (w *walker) close() {
	if len(w.text) > maxKept {
		return // the decoder would keep the text in memory
	}
	walkers.Put(w)
}

// next reads the next value and reports whether there is one.
func (w *walker) next() bool {
	if w.ended {
		return false
	}
	if kind := w.d.PeekKind(); kind == '}' || kind == ']' {
		return false
	}
	read, err := w.d.ReadValue()
	if w.ended = err != nil; w.ended {
		return false
	}
	end := int(w.d.InputOffset())
	w.value = w.text[end-len(read) : end : end]
	return true
}
