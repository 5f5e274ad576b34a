package shell_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// fullStore has one record and no space for another word about it.
type fullStore struct{ shell.Record }

func (s fullStore) Save(context.Context, shell.Record) error {
	return errors.New("no space left on device")
}
func (s fullStore) Load(context.Context, string) (shell.Record, error) { return s.Record, nil }
func (s fullStore) List(context.Context) ([]shell.Record, error) {
	return []shell.Record{s.Record}, nil
}
func (s fullStore) Delete(context.Context, string) error { return nil }

// An execution that an earlier process left running is reported as interrupted
// although the disk is too full to store that.
func TestInterruptedOnAFullDisk(t *testing.T) {
	store := fullStore{shell.Record{ID: "0123456789abcdef", Run: "r", Path: "0", State: shell.Running, BootID: "an earlier boot"}}
	m, err := shell.New(shell.Options{Dir: t.TempDir(), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lost, err := m.InterruptedRuns(t.Context())
	if err != nil || len(lost["r"]) != 1 || lost["r"][0].ID != store.ID {
		t.Errorf("%+v, %v; want the one execution", lost, err)
	}
}
