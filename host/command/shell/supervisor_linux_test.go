package shell

import "testing"

// Supervisors that many executions at once needed serve the next ones, and end when none come.
func TestIdleSupervisors(t *testing.T) {
	var s supervisors
	var all []*supervisor
	for range maxIdle + 2 {
		one, err := s.take(steps)
		if err != nil {
			t.Fatal(err)
		}
		one.fresh = true
		all = append(all, one)
	}
	for _, one := range all {
		s.put(one, steps)
	}
	for i := range all {
		if again, err := s.take(steps); err != nil || again != all[len(all)-1-i] {
			t.Errorf("the next execution has another supervisor, %v", err)
		}
	}
	for _, one := range all {
		s.put(one, steps)
	}
	s.trim(steps)
	if n := len(s.idle[steps]); n != len(all) {
		t.Errorf("%d are idle of %d that were needed", n, len(all))
	}
	s.trim(steps)
	<-all[0].gone
	<-all[1].gone
	if n := len(s.idle[steps]); n != maxIdle {
		t.Errorf("%d are idle", n)
	}
	s.close()
}
