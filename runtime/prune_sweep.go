package runtime

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A sweeper is a store whose blobs can go.
type sweeper interface {
	SweepBlobs(keep func(digest string) bool) (removed int, bytes int64, err error)
}

// sweep lets blobs go that nothing names. Whatever looks like a digest, in any
// pair or record of the store, names one: that keeps a blob too many now and
// then, and never takes one too many.
func (p *pruner) sweep(ctx context.Context) error {
	db, ok := p.rt.db.(sweeper)
	if !ok || !p.rt.swept.IsZero() && p.now.Sub(p.rt.swept) < sweepInterval {
		return nil
	}
	var named map[blobDigest]struct{}
	var bad error
	removed, bytes, err := db.SweepBlobs(func(digest string) bool {
		if named == nil && bad == nil { // the first blob: a store without any is not read
			named, bad = p.named(ctx)
		}
		if bad != nil {
			return true
		}
		d, ok := parseDigest(digest)
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
	p.out.Swept, p.rt.swept = true, time.Now()
	return nil
}

// named returns every digest in the store, and those of the plugins in use.
func (p *pruner) named(ctx context.Context) (map[blobDigest]struct{}, error) {
	// What names a blob that is not protected any more was given to the store long
	// ago, and is read below once it is committed.
	if err := p.rt.await(ctx, p.rt.db.Enqueue(store.Batch{})); err != nil {
		return nil, err
	}
	found := map[blobDigest]struct{}{}
	note := func(d blobDigest) { found[d] = struct{}{} }
	for _, digest := range p.rt.plugins.Digests() {
		eachDigest([]byte(digest), note)
	}
	for _, bucket := range buckets {
		err := p.rt.db.Scan(bucket, nil, nil, false, func(key, value []byte) bool {
			eachDigest(key, note)
			eachDigest(value, note)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	var runs []sentinels.RunID // also those that began since the pruning did
	if err := p.rt.db.Scan(bucketRuns, nil, nil, false, func(key, _ []byte) bool {
		runs = append(runs, sentinels.RunID(key))
		return true
	}); err != nil {
		return nil, err
	}
	for _, id := range runs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := p.rt.db.Journal(string(id), 1, func(_ uint64, raw []byte) error {
			eachDigest(raw, note)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// A blobDigest is a SHA-256.
type blobDigest [32]byte

func (d blobDigest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(text string) (d blobDigest, ok bool) {
	if len(text) != 2*len(d) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}

// eachDigest calls fn for every place in text that may be a digest: 64 lowercase
// hexadecimal digits in a row, within longer rows too.
func eachDigest(text []byte, fn func(blobDigest)) {
	const digits = 64
	for i := 0; i+digits <= len(text); {
		// From behind: most text has no such row, and is passed over quickly.
		j := i + digits - 1
		for j >= i && isHex(text[j]) {
			j--
		}
		if j >= i {
			i = j + 1
			continue
		}
		var d blobDigest
		if _, err := hex.Decode(d[:], text[i:i+digits]); err == nil {
			fn(d)
		}
		i++
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
