package sentinels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestAlignSteps(t *testing.T) {
	step := func(id, name, typ string) sentinels.Step {
		return sentinels.Step{ID: id, Name: name, Type: sentinels.StepType(typ)}
	}
	for _, tt := range []struct {
		name         string
		before, next []sentinels.Step
		want         []int
	}{
		{"by id, in another order", []sentinels.Step{step("a", "", "x"), step("b", "", "x")}, []sentinels.Step{step("b", "", "y"), step("a", "", "x")}, []int{1, 0}},
		{"by name", []sentinels.Step{step("", "n", "x"), step("", "", "y")}, []sentinels.Step{step("", "", "z"), step("", "n", "y"), step("", "", "x")}, []int{-1, 0, -1}},
		{"the same step", []sentinels.Step{step("", "", "x"), step("", "", "y")}, []sentinels.Step{step("", "", "y")}, []int{1}},
		{"in its place", []sentinels.Step{step("", "", "x"), step("", "", "y")}, []sentinels.Step{step("", "", "x"), step("", "", "z")}, []int{0, 1}},
		{"a step with an id is no other", []sentinels.Step{step("a", "", "x")}, []sentinels.Step{step("b", "", "x"), step("", "", "y")}, []int{-1, -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, sentinels.AlignSteps(tt.before, tt.next)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
