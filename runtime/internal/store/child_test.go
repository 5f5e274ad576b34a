package store_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// childVar is the state folder in which a re-executed test binary appends until
// it is killed.
const childVar = "STORE_TEST_CHILD"

const childRuns = 4

func childRun(i int) string { return fmt.Sprintf("0197a3c4-5b6d-7e8f-9a0b-00000000b%03d", i) }

// childMain is the main function of the child. Several producers append to one
// run each. Callbacks print "run seq" for each acknowledged batch, so that the
// producers need not wait. It does not return in the child.
func childMain() bool {
	dir := os.Getenv(childVar)
	if dir == "" {
		return false
	}
	db, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("unclean", db.Unclean())
	var out sync.Mutex
	for i := range childRuns {
		go produce(db, i, func(seq uint64) {
			out.Lock()
			defer out.Unlock()
			fmt.Println(i, seq)
		})
	}
	select {}
}

// produce appends records, each with a pair that must agree with the newest
// record, and sometimes with a blob that the record names.
func produce(db *store.DB, i int, acked func(seq uint64)) {
	run := childRun(i)
	last, _, err := db.LastSeq(run)
	if err != nil {
		panic(err)
	}
	for seq := last + 1; ; seq++ {
		rec := fmt.Sprintf("%d", seq)
		if seq%25 == 0 {
			digest, err := db.PutBlob([]byte(strings.Repeat(rec, 50)))
			if err != nil {
				panic(err)
			}
			rec += " " + digest
		}
		ticket := db.Enqueue(store.Batch{
			Appends: []store.Append{{Run: run, Seq: seq, Record: []byte(rec)}},
			Puts:    []store.Put{{Bucket: "last", Key: []byte(run), Value: fmt.Append(nil, seq)}},
			Lazy:    seq%3 == 0,
		})
		ticket.OnDone(func(err error) {
			if err != nil {
				panic(err)
			}
			acked(seq)
		})
		if seq%7 == 0 {
			<-ticket.Done() // otherwise the queue would only grow
		}
	}
}
