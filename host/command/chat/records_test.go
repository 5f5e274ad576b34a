package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// memory is a store of documents that lasts as long as the test.
type memory map[[2]string]sentinels.Document

func (m memory) Get(_ context.Context, collection, id string) (sentinels.Document, error) {
	d, ok := m[[2]string{collection, id}]
	if !ok {
		return d, abi.New(abi.NotFound, fmt.Sprintf("collection %q has no document %q", collection, id))
	}
	return d, nil
}

func (m memory) List(context.Context, string, command.Query) ([]sentinels.Document, string, error) {
	return nil, "", errors.New("chat does not list")
}

func (m memory) Put(_ context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error) {
	d := m[[2]string{collection, id}]
	if expect != sentinels.AnyRevision && expect != d.Revision {
		return d, abi.New(abi.Conflict, fmt.Sprintf("document %q has revision %d", id, d.Revision))
	}
	d = sentinels.Document{Collection: collection, ID: id, Revision: d.Revision + 1, CreatedAt: d.CreatedAt, Data: slices.Clone(data)}
	if d.Revision == 1 {
		d.CreatedAt = began.Add(time.Duration(len(m)) * time.Second)
	}
	m[[2]string{collection, id}] = d
	return d, nil
}

func (m memory) Delete(_ context.Context, collection, id string, _ uint64) error {
	delete(m, [2]string{collection, id})
	return nil
}

func (m memory) Emit(_ context.Context, e sentinels.Event) error {
	m[[2]string{"events", e.ID}] = sentinels.Document{Collection: "events", ID: e.ID, Data: e.Data}
	return nil
}

var _ command.Records = memory(nil)
