package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// operators are the conditions that a filter may have instead of a value.
var operators = []string{"$gt", "$gte", "$in", "$lt", "$lte"}

// The most that a filter has: each document of a collection is compared with all of it,
// and nothing else uses the documents meanwhile.
const (
	maxFilterFields = 64
	maxFilterValues = 1000 // of one $in
)

// CheckFilter returns the error of a filter with an unknown operator, with an operand
// that its operator cannot compare, or with more than it may have.
func CheckFilter(op string, filter map[string]json.RawMessage) error {
	if len(filter) > maxFilterFields {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "filter", Message: fmt.Sprintf("%s: filter: %d fields, at most %d are compared", op, len(filter), maxFilterFields)}
	}
	bad := func(format string, args ...any) error {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "filter", Message: op + ": filter: " + fmt.Sprintf(format, args...),
			Hint: "known are " + strings.Join(operators, " ") + `, as in {"age": {"$gte": 18}}`}
	}
	for name, want := range filter {
		if strings.HasPrefix(name, "$") {
			return bad("unknown operator %q in place of a field", name)
		}
		value, _ := decodeAny(want) // what cannot be read fits nothing
		if key := operatorBelow(value, conditions(want) != nil); key != "" {
			return bad("field %q: operator %q below the value of the field", name, key)
		}
		for key, operand := range conditions(want) {
			if err := checkOperand(key, operand); err != "" {
				return bad("field %q: %s", name, err)
			}
		}
	}
	return nil
}

// operatorBelow returns a key that begins with a dollar in an object of a value, "" if
// there is none. With known the keys of the value itself are operators.
func operatorBelow(value any, known bool) string {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if strings.HasPrefix(key, "$") && !known {
				return key
			}
			if key := operatorBelow(below, false); key != "" {
				return key
			}
		}
	case []any:
		for _, below := range v {
			if key := operatorBelow(below, false); key != "" {
				return key
			}
		}
	}
	return ""
}

func checkOperand(operator string, operand json.RawMessage) string {
	v, err := decodeAny(operand)
	switch {
	case err != nil:
		return err.Error()
	case !slices.Contains(operators, operator):
		return fmt.Sprintf("unknown operator %q", operator)
	case operator == "$in":
		list, is := v.([]any)
		switch {
		case !is:
			return "$in needs a list of values"
		case len(list) > maxFilterValues:
			return fmt.Sprintf("$in has %d values, at most %d are compared", len(list), maxFilterValues)
		}
		return ""
	}
	switch v.(type) {
	case json.Number, string:
		return ""
	}
	return operator + " needs a number or a text"
}

// conditions returns the operators of a filter's value: an object with a key that begins
// with a dollar. Any other value is compared as it is.
func conditions(want json.RawMessage) map[string]json.RawMessage {
	var found map[string]json.RawMessage
	if trimmed := bytes.TrimSpace(want); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(trimmed, &found) != nil {
		return nil
	}
	for key := range found {
		if strings.HasPrefix(key, "$") {
			return found
		}
	}
	return nil
}

// Matcher returns a function that reports whether a document fits the query's filter:
// every field of the filter has its value there, or fulfils its conditions. The filter is
// decoded once.
func (q Query) Matcher() func(sentinels.Document) bool {
	tests := map[string][]test{}
	for name, want := range q.Filter {
		tests[name] = testsOf(want)
	}
	return func(d sentinels.Document) bool {
		if len(tests) == 0 {
			return true
		}
		fields := FieldsOf(d)
		for name, all := range tests {
			text, ok := fields[name]
			if !ok {
				return false
			}
			have, err := decodeAny(text)
			if err != nil || slices.ContainsFunc(all, func(t test) bool { return !t.passes(have) }) {
				return false
			}
		}
		return true
	}
}

// A test is one condition of a filter on one field. The operator "" wants the value itself.
type test struct {
	operator string
	operand  any
	err      error // of decoding the operand: it fits nothing
}

func testsOf(want json.RawMessage) (list []test) {
	all := conditions(want)
	if all == nil {
		all = map[string]json.RawMessage{"": want}
	}
	for operator, operand := range all {
		t := test{operator: operator}
		t.operand, t.err = decodeAny(operand)
		list = append(list, t)
	}
	return list
}

func (t test) passes(have any) bool {
	switch {
	case t.err != nil:
		return false
	case t.operator == "":
		return equal(have, t.operand)
	case t.operator == "$in":
		list, _ := t.operand.([]any) // CheckFilter has read it
		return slices.ContainsFunc(list, func(v any) bool { return equal(have, v) })
	case rank(have) != rank(t.operand):
		return false
	}
	order := compareAny(have, t.operand)
	switch t.operator {
	case "$gt":
		return order > 0
	case "$gte":
		return order >= 0
	case "$lt":
		return order < 0
	case "$lte":
		return order <= 0
	}
	return false
}

// FieldsOf returns the fields of a document's data, and under the names id, revision,
// createdAt and updatedAt those of the document if the data has none.
func FieldsOf(d sentinels.Document) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(d.Data, &fields) // data that is no object has no fields
	for name, value := range map[string]any{"id": d.ID, "revision": d.Revision, "createdAt": d.CreatedAt.UTC(), "updatedAt": d.UpdatedAt.UTC()} {
		if _, own := fields[name]; own {
			continue
		}
		if text, err := json.Marshal(value); err == nil {
			fields[name] = text
		}
	}
	return fields
}

// equal compares two values, numbers by what they are: 1 is 1.0.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, is := b.(json.Number)
		return is && compareNumbers(x, y) == 0
	case []any:
		y, is := b.([]any)
		return is && slices.EqualFunc(x, y, equal)
	case map[string]any:
		y, is := b.(map[string]any)
		return is && maps.EqualFunc(x, y, equal)
	}
	return reflect.DeepEqual(a, b)
}

// CompareJSON orders two values: null, booleans, numbers by value, texts by their bytes,
// everything else as one.
func CompareJSON(a, b json.RawMessage) int {
	x, _ := decodeAny(a) // what cannot be read is null
	y, _ := decodeAny(b)
	return compareAny(x, y)
}

func compareAny(x, y any) int {
	if order := cmp.Compare(rank(x), rank(y)); order != 0 {
		return order
	}
	switch x := x.(type) {
	case bool:
		return cmp.Compare(truth(x), truth(y.(bool)))
	case json.Number:
		return compareNumbers(x, y.(json.Number))
	case string:
		return cmp.Compare(x, y.(string))
	}
	return 0
}

// compareNumbers compares exactly: ids of other programs do not fit a float64.
func compareNumbers(x, y json.Number) int {
	const precision = 256 // of every number of up to 77 digits
	a, _, errA := big.ParseFloat(string(x), 10, precision, big.ToNearestEven)
	b, _, errB := big.ParseFloat(string(y), 10, precision, big.ToNearestEven)
	if errA != nil || errB != nil { // an exponent that is out of range
		return cmp.Compare(string(x), string(y))
	}
	return a.Cmp(b)
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case json.Number:
		return 2
	case string:
		return 3
	}
	return 4
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SameJSON compares values, not their writing. Numbers are the same if they
// are written the same: 1 and 1.0 differ, and no digit is lost.
func SameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeAny(a)
	y, errY := decodeAny(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeAny(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
