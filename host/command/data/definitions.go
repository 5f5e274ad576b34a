package data

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// definitions is the collection that shows the host's sentinels.
const definitions = "sentinels"

// definition answers as if the collection were empty when the host shows none.
func (f family) definition(ctx context.Context, id string) (sentinels.Document, error) {
	if f.opt.Definitions == nil {
		return sentinels.Document{}, abi.New(abi.NotFound, fmt.Sprintf("collection %q has no document %q", definitions, id))
	}
	return f.opt.Definitions.Definition(ctx, id)
}

// queryDefinitions does for definitions what Records do for documents. There
// are hundreds at most, so all of them are looked at. Callers who do not see secrets select by the
// redacted text, and those whose id holds one are left out for them.
func (f family) queryDefinitions(ctx context.Context, call *command.Call, q command.Query) ([]sentinels.Document, error) {
	if f.opt.Definitions == nil {
		return nil, nil
	}
	docs, err := f.opt.Definitions.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	docs = slices.Clone(docs) // sorted below, and the caller's own
	order := func(a, b string) int {
		if q.Reverse {
			a, b = b, a
		}
		return strings.Compare(a, b)
	}
	slices.SortFunc(docs, func(a, b sentinels.Document) int { return order(a.ID, b.ID) })
	found, matches := []sentinels.Document{}, q.Matcher()
	for _, d := range docs {
		if q.After != "" && order(d.ID, q.After) <= 0 {
			continue
		}
		if call.Redact != nil {
			if call.Visible(d.ID) != d.ID {
				continue
			}
			d.Data = call.Redact(d.Data)
		}
		if matches(d) {
			if err := call.Count(int64(len(d.Data))); err != nil {
				return nil, err
			}
			found = append(found, d)
		}
		if len(found) == q.Limit {
			break
		}
	}
	return found, nil
}
