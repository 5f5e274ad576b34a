package strictjson

import "testing"

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2,3]}`, `{ "b": [2, 3], "a": 1 }`, true},
		{`[1,2]`, `[2,1]`, false},
		{`1`, `1.0`, false}, // numbers as they are written
		{`12345678901234567890`, `12345678901234567891`, false},
		{`"\u0041"`, `"A"`, true},
		{`{`, `{`, true}, // the same text
		{`{`, `{ `, false},
	} {
		if got := Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
