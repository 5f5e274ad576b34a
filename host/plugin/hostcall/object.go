// Package request reads the values in a step plugin's host call that the host
// itself answers, and writes the answers. The objects around the values are read
// with strictjson.Members.
package hostcall

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits are those of a host call; sdk/ABI.md A6.1 and A8.
var Limits = strictjson.Limits{Bytes: maxBytes, Depth: 256, Keys: maxBytes, StringBytes: maxBytes}

const maxBytes = 256 << 10

// Text reads a string. Null is the empty string, because an SDK may write null
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

// Number reads an integer from 0; null is 0. A number with a point or an exponent
// is refused even if it is an integer, as encoding/json does.
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

// Flag reads true or false; null is false.
func Flag(raw json.RawMessage) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, errors.New("want true or false")
}

// Answer encodes a value as JSON without escaping < > and &: guests are not web
// pages, and each escape would take six bytes of a bounded answer.
func Answer(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
