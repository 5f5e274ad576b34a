package store

// SetAfterCommit makes every commit that worked look failed while fn returns
// an error. Not for use while a commit is under way.
func (db *DB) SetAfterCommit(fn func() error) { db.afterCommit = fn }
