package definition_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
)

// After a save or a deletion every list has it, while others save, delete and list. A
// cache that kept what the store had a moment before would have an older revision.
func TestListHasTheNewest(t *testing.T) {
	s := open(t, definition.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		id := fmt.Sprintf("s%d", w)
		wg.Go(func() {
			for n := range 100 {
				def := decode(t, fmt.Sprintf(`{"id":%q,"name":"n","steps":[{"type":"call","command":"do","value":%d}],"loop":{"type":"once"}}`, id, n))
				saved, err := s.Save(t.Context(), def, revision.SaveOptions{Expect: revision.Any})
				if err != nil {
					t.Error(err)
					return
				}
				if got := listedRevision(t, s, id); got != saved.Revision {
					t.Errorf("%s: revision %d is listed, saved was %d", id, got, saved.Revision)
				}
				if n%10 != 9 {
					continue
				}
				if _, err := s.Delete(t.Context(), saved.ID, revision.SaveOptions{Expect: saved.Revision}); err != nil {
					t.Error(err)
				}
				if got := listedRevision(t, s, id); got != 0 {
					t.Errorf("%s: revision %d is listed of a deleted definition", id, got)
				}
			}
		})
		wg.Go(func() {
			for range 400 {
				listedRevision(t, s, id)
			}
		})
	}
	wg.Wait()
}

// listedRevision returns the revision that the list of definitions has, 0 for
// none.
func listedRevision(t *testing.T, s *definition.Store, id string) int {
	list, err := s.List()
	if err != nil {
		t.Error(err)
	}
	for _, head := range list {
		if string(head.ID) == id {
			return head.Revision
		}
	}
	return 0
}
