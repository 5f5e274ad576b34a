//go:build unix && !linux

package shell

import "errors"

const limits = "only the process group of an execution is ended, daemons that leave it are not, and nothing is found after a crash of the host"

func bootID() string { return "" }

func startTime(int) uint64 { return 0 }

func endLeftover(Record, string) (int, bool) { return 0, false }

func memoryOf([]int) []int64 { return nil }

func reapAdopted() {}

func becomeSubreaper() error { return errors.New("become subreaper: not on this system") }
