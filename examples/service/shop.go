package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// An order is what a customer bought.
type order struct {
	Number int    `json:"number"` // from 1 on, without gaps
	What   string `json:"what"`
	Cents  int    `json:"cents"`
}

// A shop keeps its orders in a file, one a line. It knows nothing of sentinels:
// it stands for whatever a program does besides.
//
// # Concurrency
//
// Safe for concurrent use. It has no goroutines.
type shop struct {
	file *os.File

	mu     sync.Mutex
	orders []order
	placed chan struct{} // closed and replaced with each order
}

// openShop reads the orders that there are.
func openShop(dir string) (*shop, error) {
	name := filepath.Join(dir, "orders.jsonl")
	s := &shop{placed: make(chan struct{})}
	old, err := os.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		lines := bufio.NewScanner(old)
		for lines.Scan() {
			var o order
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				return nil, errors.Join(fmt.Errorf("read %q: %w", name, err), old.Close())
			}
			s.orders = append(s.orders, o)
		}
		if err := errors.Join(lines.Err(), old.Close()); err != nil {
			return nil, err
		}
	}
	s.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return s, err
}

// place takes an order. It is on the disk when place returns, so that an order
// that was acknowledged is one that the trigger will find.
func (s *shop) place(o order) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Number = len(s.orders) + 1
	line, err := json.Marshal(o)
	if err != nil {
		return o, err
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return o, err
	}
	if err := s.file.Sync(); err != nil {
		return o, err
	}
	s.orders = append(s.orders, o)
	close(s.placed)
	s.placed = make(chan struct{})
	return o, nil
}

// next returns the first order behind a number, waiting for it.
func (s *shop) next(ctx context.Context, after int) (order, error) {
	for {
		s.mu.Lock()
		if after < len(s.orders) {
			defer s.mu.Unlock()
			return s.orders[after], nil
		}
		placed := s.placed
		s.mu.Unlock()
		select {
		case <-placed:
		case <-ctx.Done():
			return order{}, ctx.Err()
		}
	}
}

func (s *shop) close() error { return s.file.Close() }
