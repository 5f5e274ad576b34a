package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// sweep deletes blobs that nothing names. Anything that looks like a digest, in any
// pair or record of the store, names a blob. So a blob may be kept that is not
// needed, and none is deleted that is.
func (p *pruning) sweep(ctx context.Context) error {
	db, ok := p.Store.(Sweeper)
	if last := p.p.swept; !ok || !last.IsZero() && p.now.Sub(last) < p.SweepInterval {
		return nil
	}
	var named map[digest]struct{}
	var bad error
	removed, bytes, err := db.SweepBlobs(func(text string) bool {
		if named == nil && bad == nil { // the first blob: a store without blobs is not read
			named, bad = p.named(ctx)
		}
		if bad != nil {
			return true
		}
		d, ok := parseDigest(text)
		_, keep := named[d]
		return keep || !ok
	})
	p.out.Blobs, p.out.BlobBytes = removed, bytes
	if err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	p.out.Swept, p.p.swept = true, time.Now()
	return nil
}

// named returns every digest in the store, and those that are in use.
func (p *pruning) named(ctx context.Context) (map[digest]struct{}, error) {
	// The batch that names a blob which is not protected any more was enqueued long
	// ago. It is read below if it is committed.
	if err := p.Await(ctx, p.Store.Enqueue(store.Batch{})); err != nil {
		return nil, err
	}
	found := map[digest]struct{}{}
	note := func(d digest) { found[d] = struct{}{} }
	for _, text := range p.Digests() {
		eachDigest([]byte(text), note)
	}
	for _, bucket := range p.Layout.All {
		err := p.Store.Scan(bucket, nil, nil, false, func(key, value []byte) bool {
			eachDigest(key, note)
			eachDigest(value, note)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return found, p.namedInJournals(ctx, note)
}

// namedInJournals calls note with every digest in the journals of the runs there
// are now, also those that began after the pruning did.
func (p *pruning) namedInJournals(ctx context.Context, note func(digest)) error {
	var runs []sentinels.RunID
	err := p.Store.Scan(p.Layout.Runs, nil, nil, false, func(key, _ []byte) bool {
		runs = append(runs, sentinels.RunID(key))
		return true
	})
	for _, id := range runs {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = p.Store.Journal(string(id), 1, func(_ uint64, raw []byte) error {
			eachDigest(raw, note)
			return nil
		})
	}
	return err
}
