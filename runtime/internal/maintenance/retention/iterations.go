package retention

// Iterations are the iterations of an active run whose records are in the journal,
// oldest first. Recovery needs only the newest iteration.end and what follows; the
// rest is for the trace. The first record of a run always stays. The zero value has
// none. It is not safe for concurrent use.
type Iterations struct {
	kept []iteration
}

type iteration struct {
	first uint64 // number of its first record
	bytes int64  // of the run's journal when it began
}

// Recovered returns the iterations of a run that was recovered. All that the
// journal has counts as one.
func Recovered() Iterations { return Iterations{kept: []iteration{{first: 2}}} }

// Add adds an iteration that begins with record first, when the journal has so
// many bytes.
func (k *Iterations) Add(first uint64, bytes int64) {
	k.kept = append(k.kept, iteration{first, bytes})
}

// Cut removes the oldest iterations, so that no more than most are left, and no
// more than mostBytes of a journal that has so many bytes. The newest one stays. It
// returns the numbers of the first and the last record to remove; ok is false if
// there are none.
func (k *Iterations) Cut(bytes int64, most int, mostBytes int64) (from, to uint64, ok bool) {
	cut := 0
	for cut < len(k.kept)-1 && (len(k.kept)-cut > most || bytes-k.kept[cut].bytes > mostBytes) {
		cut++
	}
	if cut == 0 {
		return 0, 0, false
	}
	from, to = k.kept[0].first, k.kept[cut].first-1
	k.kept = append([]iteration(nil), k.kept[cut:]...)
	return max(from, 2), to, true
}
