package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// memory is a store of documents that lasts as long as the test.
type memory map[[2]string]sentinels.Document

func (m memory) Get(_ context.Context, collection, id string) (sentinels.Document, error) {
	d, ok := m[[2]string{collection, id}]
	if !ok {
		return d, abi.New(abi.NotFound, fmt.Sprintf("collection %q has no document %q", collection, id))
	}
	return d, nil
}

func (m memory) List(_ context.Context, collection string, q command.Query) ([]sentinels.Document, string, error) {
	var docs []sentinels.Document
	matches := q.Matcher()
	for key, d := range m {
		behind := q.After == "" || (d.ID > q.After) != q.Reverse && d.ID != q.After
		if key[0] == collection && behind && matches(d) {
			docs = append(docs, d)
		}
	}
	slices.SortFunc(docs, func(a, b sentinels.Document) int {
		if q.Reverse {
			a, b = b, a
		}
		return strings.Compare(a.ID, b.ID)
	})
	if q.Limit == 0 {
		q.Limit = 100
	}
	return docs[:min(len(docs), q.Limit)], "", nil
}

func (m memory) Put(_ context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error) {
	d := m[[2]string{collection, id}]
	if expect != sentinels.AnyRevision && expect != d.Revision {
		return d, abi.New(abi.Conflict, fmt.Sprintf("document %q has revision %d", id, d.Revision))
	}
	d = sentinels.Document{Collection: collection, ID: id, Revision: d.Revision + 1, Data: slices.Clone(data)}
	m[[2]string{collection, id}] = d
	return d, nil
}

func (m memory) Delete(ctx context.Context, collection, id string, expect uint64) error {
	d, err := m.Get(ctx, collection, id)
	if err != nil {
		return err
	}
	if expect != sentinels.AnyRevision && expect != d.Revision {
		return abi.New(abi.Conflict, "stale")
	}
	delete(m, [2]string{collection, id})
	return nil
}

func (m memory) Emit(context.Context, sentinels.Event) error { return nil }

var _ command.Records = memory(nil)
