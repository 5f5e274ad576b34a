package livefeed

// A queue is a first-in, first-out ring buffer with access by position. It grows
// by doubling, and shrinks once it is mostly empty, because there is one for
// every run with recent entries.
type queue[T any] struct {
	ring []T // the length is a power of two, or 0
	head int
	n    int
}

func (q *queue[T]) len() int { return q.n }

// at returns the i-th from the front, 0 <= i < len.
func (q *queue[T]) at(i int) T { return q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		q.resize(max(2*q.n, 4))
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// pop removes the front of a queue that is not empty.
func (q *queue[T]) pop() T {
	var none T
	v := q.ring[q.head]
	q.ring[q.head] = none // or it would be kept alive
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if len(q.ring) > 64 && q.n <= len(q.ring)/8 {
		q.resize(len(q.ring) / 4)
	}
	return v
}

func (q *queue[T]) resize(size int) {
	ring := make([]T, size)
	for i := range q.n {
		ring[i] = q.at(i)
	}
	q.ring, q.head = ring, 0
}
