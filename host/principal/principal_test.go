package principal_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/principal"
)

// TestNarrow: a person acts under a name or as one with fewer rights; no other principal
// does, and a header never adds rights.
func TestNarrow(t *testing.T) {
	person, agent := principal.Principal{}, principal.Principal{Kind: principal.Agent, Name: "ci"}
	for header, want := range map[string]principal.Principal{
		"": {}, "ann": {Kind: principal.Person, Name: "ann"}, "agent:ci": agent, "viewer:wall": {Kind: principal.Viewer, Name: "wall"},
	} {
		got, err := person.Narrow(header)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", header, got, err)
		}
		if back, err := person.Narrow(got.Header()); err != nil || back != want {
			t.Errorf("%q: %q is read as %+v, %v", header, got.Header(), back, err)
		}
	}
	for _, header := range []string{"root:x", "agent:", ":", "a b", "-x", "x\r\ny", "agent:../../x"} {
		if got, err := person.Narrow(header); err == nil {
			t.Errorf("%q is %+v", header, got)
		}
	}
	for _, header := range []string{"ann", "person:ann", "agent:other"} {
		if got, err := agent.Narrow(header); err == nil || got != agent {
			t.Errorf("agent as %q: %+v, %v", header, got, err)
		}
	}
}

// TestBelow: a process below a step has the name of all of them, whatever it gives itself.
func TestBelow(t *testing.T) {
	for header, want := range map[string]string{"": "agent:below-step", "ann": "agent:below-step", "agent:ci": "agent:below-step", "viewer:wall": "viewer:below-step"} {
		p, err := principal.Principal{}.Narrow(header)
		if got := p.Below(principal.BelowStep).Header(); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", header, got, err, want)
		}
	}
}

// FuzzNarrow: no header makes a person of an agent, or of a viewer anything else.
func FuzzNarrow(f *testing.F) {
	f.Add("ann")
	f.Add("person:ann")
	f.Fuzz(func(t *testing.T, header string) {
		for _, kind := range []principal.Kind{principal.Agent, principal.Viewer} {
			if p, _ := (principal.Principal{Kind: kind}).Narrow(header); p.Kind != kind {
				t.Errorf("%s is %+v", kind, p)
			}
		}
	})
}
