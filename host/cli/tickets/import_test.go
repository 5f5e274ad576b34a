package tickets

import (
	"encoding/json"
	"testing"
)

func FuzzRows(f *testing.F) {
	f.Add([]byte(`[{"id":"a"},{"id":"b"}]`))
	f.Add([]byte("{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n"))
	f.Add([]byte(`[1,2`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := parseRows("f", text)
		if err != nil {
			return
		}
		before := 1
		for _, r := range rows {
			if !json.Valid(r.text) || r.line < before {
				t.Errorf("line %d behind %d: %s", r.line, before, r.text)
			}
			before = r.line
		}
	})
}
