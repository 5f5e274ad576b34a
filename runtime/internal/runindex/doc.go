// Package runindex finds runs without reading all of them: by sentinel, by parent and
// those that are not over, in lists with filters, and what the runs of a sentinel come
// to.
//
// The entries of the index are written in the commits that make them true, so it never
// disagrees with the summaries: callers put [Index.StartPuts], [EndPut] and
// [ForgetPuts] into their commits. The totals are in memory: callers report what
// changes them with [Index.Began], [Index.Ended] and [Index.Forget].
//
// Package runtime makes one index for each store.
package runindex
