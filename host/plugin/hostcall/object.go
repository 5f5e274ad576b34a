// Package hostcall decodes the JSON values in the host calls of step plugins that
// the host itself handles, and encodes the results. Callers decode the enclosing
// objects with strictjson.Members.
package hostcall

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits are the limits of a host call's JSON, of clauses A6.1 and A8 of sdk/ABI.md.
var Limits = strictjson.Limits{Bytes: maxBytes, Depth: 256, Keys: maxBytes, StringBytes: maxBytes}

const maxBytes = 256 << 10

// Text decodes a string. Null is the empty string, because an SDK may write null
// for an absent value.
func Text(raw json.RawMessage) (string, error) {
	if string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("want a string")
	}
	return s, nil
}

// Number decodes an integer of at least 0; null is 0. As in encoding/json, a number
// with a decimal point or an exponent is an error even if its value is an integer.
func Number(raw json.RawMessage) (int64, error) {
	var n int64
	if string(raw) == "null" {
		return 0, nil
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, errors.New("want an integer")
	}
	if n < 0 {
		return 0, errors.New("want an integer from 0")
	}
	return n, nil
}

// Flag decodes true or false; null is false.
func Flag(raw json.RawMessage) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, errors.New("want true or false")
}

// Answer encodes a result as JSON without escaping <, > and &: guests are not web
// pages, and each escape would take six bytes of the limited size of a result.
func Answer(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
