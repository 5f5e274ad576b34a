package shell

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A slowStore deletes a record only when it is let.
type slowStore struct {
	Store
	deleting, let chan struct{}
}

func (s slowStore) Delete(ctx context.Context, id string) error {
	s.deleting <- struct{}{}
	<-s.let
	return s.Store.Delete(ctx, id)
}

// TestForgottenStaysForgotten looks up an execution between its removal from memory and that
// of its record: it must not come back without its output.
func TestForgottenStaysForgotten(t *testing.T) {
	store := slowStore{files{t.TempDir(), slog.New(slog.DiscardHandler)}, make(chan struct{}), make(chan struct{})}
	m, err := New(Options{MaxKept: 1, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	reg, err := command.NewRegistry(Commands(m)...)
	if err != nil {
		t.Fatal(err)
	}
	workspace := t.TempDir()
	execute := func() (out struct{ ExecutionID string }) {
		call := &command.Call{Command: "code/shell/execute", Params: json.RawMessage(`{"command":"true"}`), Workspace: workspace}
		res, err := reg.Call(t.Context(), call)
		if err == nil {
			err = json.Unmarshal(res, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := execute().ExecutionID
	execute()
	<-store.deleting
	found := make(chan error, 1)
	go func() {
		_, err := m.find(context.Background(), first)
		found <- err
	}()
	select {
	case err := <-found:
		close(store.let)
		t.Fatalf("looked up while it is forgotten: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(store.let)
	if err := <-found; abi.CodeOf(err) != abi.NotFound {
		t.Errorf("after it was forgotten: %v", err)
	}
	if m.known(first) != nil {
		t.Error("it is in memory again")
	}
}
