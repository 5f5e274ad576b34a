package step

import "testing"

// TestShellResultInTheContextOfAModel has the exit code and standard error too, which the
// text of the result has not.
func TestShellResultInTheContextOfAModel(t *testing.T) {
	for value, want := range map[string]string{
		`{"executionId":"x","exitCode":2,"stdout":"out\n","stderr":"no rule\n","text":"out","output":"out\nno rule\n"}`: "exit code 2\nout\nno rule\n",
		`{"text":"reply","usage":{}}`: "reply",
		`{"exitCode":2,"output":{}}`:  `{"exitCode":2,"output":{}}`,
		`{"exitCode":2,"output":"x"}`: `{"exitCode":2,"output":"x"}`,
		`"a text"`:                    "a text",
		`[{"text":"a"},{"text":"b"}]`: "a\nb",
	} {
		if got := contextValue([]byte(value)); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
