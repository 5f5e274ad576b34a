package run

import "testing"

func TestChoose(t *testing.T) {
	choices := []string{"retry", "skip", "fail"}
	for word, want := range map[string]string{"retry": "retry", "r": "retry", "SK": "skip", "": "", "x": "", "retryy": ""} {
		if got, ok := choose(word, choices); got != want || ok != (want != "") {
			t.Errorf("Choose(%q) = %q, %v", word, got, ok)
		}
	}
	if got, ok := choose("a", []string{"approve", "abort"}); ok {
		t.Errorf("an ambiguous beginning is %q", got)
	}
}
