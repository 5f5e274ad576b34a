package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// strict reads JSON into v and refuses unknown keys and trailing text.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text behind the JSON value")
	}
	return nil
}
