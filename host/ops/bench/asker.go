package bench

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// An asker makes GET requests over one connection with as little work of its own
// as can be: what asks runs on the same processors as what is asked, and a usual
// HTTP client takes longer for a small answer than its server does.
type asker struct {
	conn net.Conn
	in   *bufio.Reader
	rest string // of every request, behind the path
}

func (s *served) asker() (*asker, error) {
	addr := strings.TrimPrefix(s.url, "http://")
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &asker{conn, bufio.NewReaderSize(conn, 32<<10), " HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + s.token + "\r\n\r\n"}, nil
}

func (a *asker) close() { _ = a.conn.Close() }

// get asks for a path and reads past the answer, which must be a good one.
func (a *asker) get(path string) error {
	if err := a.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := a.conn.Write([]byte("GET " + path + a.rest)); err != nil {
		return err
	}
	status, err := a.line()
	if err != nil {
		return err
	}
	length, chunked := 0, false
	for {
		header, err := a.line()
		if err != nil {
			return err
		}
		if header == "" {
			break
		}
		name, value, _ := strings.Cut(header, ": ")
		switch name {
		case "Content-Length":
			if length, err = strconv.Atoi(value); err != nil {
				return fmt.Errorf("GET %s: length %q: %w", path, value, err)
			}
		case "Transfer-Encoding":
			chunked = true
		}
	}
	if chunked {
		err = a.chunks()
	} else {
		_, err = a.in.Discard(length)
	}
	if err == nil && !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		err = fmt.Errorf("GET %s: %s", path, status)
	}
	return err
}

// chunks reads past a body whose length was not known beforehand.
func (a *asker) chunks() error {
	for {
		text, err := a.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(text, 16, 32)
		if err != nil || n < 0 {
			return errors.Join(fmt.Errorf("chunk of %q bytes", text), err)
		}
		if _, err := a.in.Discard(int(n) + len("\r\n")); err != nil || n == 0 {
			return err
		}
	}
}

func (a *asker) line() (string, error) {
	line, err := a.in.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}
