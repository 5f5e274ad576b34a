package store

import "fmt"

// Buckets that the store reserves for itself.
const (
	journalBucket = "journal"
	storeBucket   = "store"
)

// maxKey and maxValue are limits of bbolt. They are checked before a batch is
// applied, because an error of bbolt in the middle would spoil the whole
// transaction.
const (
	maxKey   = 32768
	maxValue = 1 << 30
)

// A tx is a write transaction of either implementation. An error of its writing
// methods is a fault of the storage, never of a batch.
type tx interface {
	// An error of lastSeq or get refuses the batch: the value exists and is
	// damaged.
	lastSeq(run runKey) (uint64, error)
	get(bucket string, key []byte) (value []byte, exists bool, err error)
	append(run runKey, seq uint64, record []byte) error
	put(bucket string, key, value []byte) error
	delete(bucket string, key []byte) error
	trim(run runKey, from, to uint64) error
}

// checkBatch checks the arguments of a batch and returns the size of its payload
// in bytes.
func checkBatch(b *Batch) (bytes int64, err error) {
	for i := range b.Appends {
		a := &b.Appends[i]
		if _, err := parseRun(a.Run); err != nil {
			return 0, err
		}
		if len(a.Record) > maxValue {
			return 0, fmt.Errorf("append run %q: %w: record of %d bytes", a.Run, ErrInvalid, len(a.Record))
		}
		bytes += int64(len(a.Record))
	}
	for i := range b.Puts {
		p := &b.Puts[i]
		if err := checkPair(p.Bucket, p.Key); err != nil {
			return 0, err
		}
		if len(p.Value) > maxValue {
			return 0, fmt.Errorf("put bucket %q: %w: value of %d bytes", p.Bucket, ErrInvalid, len(p.Value))
		}
		bytes += int64(len(p.Key) + len(p.Value))
	}
	for i := range b.Trims {
		t := &b.Trims[i]
		if _, err := parseRun(t.Run); err != nil {
			return 0, err
		}
		if t.From > t.To {
			return 0, fmt.Errorf("trim run %q: %w: from %d to %d", t.Run, ErrInvalid, t.From, t.To)
		}
	}
	return bytes, nil
}

func checkPair(bucket string, key []byte) error {
	if err := checkBucket(bucket); err != nil {
		return err
	}
	if len(key) == 0 || len(key) > maxKey {
		return fmt.Errorf("bucket %q: %w: key of %d bytes", bucket, ErrInvalid, len(key))
	}
	return nil
}

func checkBucket(bucket string) error {
	if bucket == "" || bucket == journalBucket || bucket == storeBucket {
		return fmt.Errorf("bucket %q: %w: reserved name", bucket, ErrInvalid)
	}
	return nil
}

// apply applies one batch. refused is the reason why the batch must not take
// effect; then nothing of it was written. err is a fault that spoils the whole
// transaction.
func apply(to tx, b *Batch) (refused, err error) {
	if refused = checkPuts(to, b); refused != nil {
		return refused, nil
	}
	if refused = checkAppends(to, b); refused != nil {
		return refused, nil
	}
	for i := range b.Appends {
		a := &b.Appends[i]
		run, _ := parseRun(a.Run) // checkBatch has checked it
		if err = to.append(run, a.Seq, a.Record); err != nil {
			return nil, err
		}
	}
	for i := range b.Puts {
		p := &b.Puts[i]
		if p.Delete {
			err = to.delete(p.Bucket, p.Key)
		} else {
			err = to.put(p.Bucket, p.Key, p.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range b.Trims {
		t := &b.Trims[i]
		run, _ := parseRun(t.Run)
		if err = to.trim(run, t.From, t.To); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// checkPuts runs the checks of a batch. A panic in a check refuses its batch:
// the writer serves all callers and must survive a bug in one of them.
func checkPuts(in tx, b *Batch) (refused error) {
	defer func() {
		if p := recover(); p != nil {
			refused = fmt.Errorf("check: panic: %v", p)
		}
	}()
	for i := range b.Puts {
		p := &b.Puts[i]
		if p.Check == nil {
			continue
		}
		current, exists, err := in.get(p.Bucket, p.Key)
		if err != nil {
			return err
		}
		if err := p.Check(current, exists); err != nil {
			return err
		}
	}
	return nil
}

// checkAppends compares the sequence numbers of a batch with its runs. A batch
// has few runs, so a list is faster than a map.
func checkAppends(in tx, b *Batch) (refused error) {
	type expect struct {
		run  runKey
		next uint64
	}
	var few [4]expect
	expects := few[:0]
	for i := range b.Appends {
		a := &b.Appends[i]
		run, _ := parseRun(a.Run)
		at := -1
		for j := range expects {
			if expects[j].run == run {
				at = j
				break
			}
		}
		if at < 0 {
			last, err := in.lastSeq(run)
			if err != nil {
				return err
			}
			at = len(expects)
			expects = append(expects, expect{run, last + 1})
		}
		if a.Seq != expects[at].next {
			return fmt.Errorf("append run %q: %w: %d, expected %d", a.Run, ErrSequence, a.Seq, expects[at].next)
		}
		expects[at].next++
	}
	return nil
}
