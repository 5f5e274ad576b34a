package supervise

import (
	"strconv"
	"syscall"
)

// A message is what the host sends.
type message struct {
	kind  byte
	spec  Spec      // with OrderStart
	files []uintptr // with OrderStart: standard input, output and error
}

// receive reads messages until the host has ended or sends an invalid message.
func receive(messages chan<- message) {
	defer close(messages)
	for {
		m, err := readMessage()
		if err != nil {
			return
		}
		messages <- m
	}
}

// readMessage reads one message.
func readMessage() (m message, err error) {
	kind, space := make([]byte, 1), make([]byte, syscall.CmsgSpace(3*4))
	n, oob, _, _, err := syscall.Recvmsg(ConnFD, kind, space, syscall.MSG_CMSG_CLOEXEC)
	for err == syscall.EINTR { //nolint:errorlint // a bare errno
		n, oob, _, _, err = syscall.Recvmsg(ConnFD, kind, space, syscall.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return m, err
	}
	if n == 0 {
		return m, syscall.EPIPE
	}
	if m.kind = kind[0]; m.kind != OrderStart {
		return m, nil
	}
	control, err := syscall.ParseSocketControlMessage(space[:oob])
	if err != nil || len(control) != 1 {
		return m, errSpec
	}
	files, err := syscall.ParseUnixRights(&control[0])
	if err != nil || len(files) != 3 {
		return m, errSpec
	}
	for _, fd := range files {
		m.files = append(m.files, uintptr(fd))
	}
	length := make([]byte, lengthDigits)
	if err := readFull(length); err != nil {
		return m, err
	}
	size, err := strconv.Atoi(string(length))
	if err != nil || size > maxSpec {
		return m, errSpec
	}
	body := make([]byte, size)
	if err := readFull(body); err != nil {
		return m, err
	}
	m.spec, err = decode(body)
	return m, err
}

// readFull fills b from the connection.
func readFull(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(ConnFD, b)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return syscall.EPIPE
		}
		b = b[n:]
	}
	return nil
}

// report writes one line to the host. If the host has ended, the line is lost.
func report(kind byte, numbers ...int) {
	line := []byte{kind}
	for _, n := range numbers {
		line = strconv.AppendInt(append(line, ' '), int64(n), 10)
	}
	_, _ = syscall.SendmsgN(ConnFD, append(line, '\n'), nil, nil, syscall.MSG_NOSIGNAL)
}
