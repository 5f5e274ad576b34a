//go:build unix

package checkpoint_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// TestFoldersVanish checks that folders which are removed, replaced and made while a
// checkpoint reads them neither end it nor change what it has of others.
func TestFoldersVanish(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	for i := range 200 {
		f.put(fmt.Sprintf("steady/%d/file", i), "1")
	}
	stop := make(chan struct{})
	var user sync.WaitGroup
	for n := range 3 {
		user.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				// Any of these may fail, as the user's other programs do the same.
				dir := f.path(fmt.Sprintf("steady/%d/moving", (i*7+n)%200))
				switch i % 3 {
				case 0:
					_ = os.MkdirAll(dir+"/a/b", 0o755)
				case 1:
					_ = os.RemoveAll(dir)
				case 2:
					_ = os.RemoveAll(dir)
					_ = os.WriteFile(dir, []byte("in its place"), 0o644)
					_ = os.Remove(dir)
				}
			}
		})
	}
	for range 15 {
		if c := f.create("", ""); len(c.Uncovered.Unreadable) > 0 {
			t.Errorf("%+v", c.Uncovered)
		}
	}
	close(stop)
	user.Wait()
	for i := range 200 {
		f.remove(fmt.Sprintf("steady/%d/moving", i))
	}
	want := f.state()
	f.create("r1", checkpoint.Begin)
	f.remove("steady/3")
	f.put("steady/5/file", "2")
	f.create("r1", checkpoint.End)
	if r := f.restore("r1", false); !r.Success {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, f.state()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
