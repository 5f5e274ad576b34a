package runtime_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// A client that has saved or deleted a definition finds that in every list from then
// on, while others save, delete and list. A cache that kept what the store had a
// moment before would show an older revision.
func TestDefinitionsAreTheNewest(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		id := fmt.Sprintf("s%d", w)
		wg.Go(func() {
			for n := range 100 {
				def := decode(t, rt, fmt.Sprintf(`{"id":%q,"name":"n","steps":[{"type":"call","command":"world/look","value":%d}],"loop":{"type":"once"}}`, id, n))
				saved, err := rt.Save(t.Context(), def, runtime.AnyRevision)
				if err != nil {
					t.Error(err)
					return
				}
				if got := listedRevision(t, rt, id); got != saved.Revision {
					t.Errorf("%s: revision %d is listed, saved was %d", id, got, saved.Revision)
				}
				if n%10 != 9 {
					continue
				}
				if err := rt.Delete(t.Context(), saved.ID, saved.Revision); err != nil {
					t.Error(err)
				}
				if got := listedRevision(t, rt, id); got != 0 {
					t.Errorf("%s: revision %d is listed of what was deleted", id, got)
				}
			}
		})
		wg.Go(func() {
			for range 400 {
				listedRevision(t, rt, id)
			}
		})
	}
	wg.Wait()
}

// listedRevision returns the revision that the list of definitions has, 0 for
// none.
func listedRevision(t *testing.T, rt *runtime.Runtime, id string) int {
	list, err := rt.Definitions()
	if err != nil {
		t.Error(err)
	}
	for _, s := range list {
		if string(s.ID) == id {
			return s.Revision
		}
	}
	return 0
}
