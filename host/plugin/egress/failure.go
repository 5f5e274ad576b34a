package egress

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// errProtocol is the cause for a status 101, which no request asks for: it has no
// body, but a connection that stays open.
var errProtocol = errors.New("it switched to another protocol")

// errCoding is the cause for a compressed response to a request with a secret: it
// cannot be redacted, and the guest could decompress it.
var errCoding = errors.New("the answer is packed in a way that was not asked for")

// failure says what ended a request, in words that hold nothing of the host's
// network: the texts of package net have resolved addresses and name servers in
// them, those of crypto/x509 the names of certificates. outer is the context of
// the call, limited the one with the time of r.
func failure(outer, limited context.Context, host string, r *request, err error) error {
	if cause := context.Cause(outer); cause != nil {
		code := abi.Cancelled
		if errors.Is(cause, context.DeadlineExceeded) {
			code = abi.Timeout
		}
		return fmt.Errorf("%w: %w", abi.New(code, fmt.Sprintf("fetch %q: the step's end came first", host)), cause)
	}
	if e := abi.As(err); e != nil {
		return e
	}
	if limited.Err() != nil {
		return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("fetch %q: no whole answer within %v", host, r.timeout), Hint: "timeoutMs gives it longer"}
	}
	code, cause := describe(err)
	if r.redirected && errors.Is(err, errAddress) {
		cause = "it redirects to a host of which " + cause
	}
	e := abi.New(code, fmt.Sprintf("fetch %q: %s", host, cause))
	switch code {
	case abi.Denied:
		e.Permanent, e.Hint = true, r.hint
	case abi.Limit: // the same answer would come again
		e.Permanent = true
	}
	return e
}

// describe gives an error of the network a code and words of our own.
func describe(err error) (abi.Code, string) {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		unknown     x509.UnknownAuthorityError
		wrongName   x509.HostnameError
		invalid     x509.CertificateInvalidError
		corrupt     flate.CorruptInputError
		timeout     net.Error
	)
	switch {
	case errors.Is(err, errAddress):
		return abi.Denied, errAddress.Error()
	case errors.Is(err, errCoding):
		return abi.Unavailable, errCoding.Error()
	case errors.Is(err, errRatio), errors.Is(err, errRaw), errors.Is(err, errHeaders):
		return abi.Limit, innermost(err).Error()
	case strings.Contains(err.Error(), "response headers exceeded"): // net/http has no name for it
		return abi.Limit, errHeaders.Error()
	case errors.Is(err, errProtocol):
		return abi.Unavailable, errProtocol.Error()
	case outOfFiles(err) != nil:
		return abi.Unavailable, "no file descriptor is left for a connection"
	case errors.As(err, &dns) && dns.IsNotFound:
		return abi.Unavailable, "no such host"
	case errors.As(err, &dns):
		return abi.Unavailable, "its name cannot be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return abi.Unavailable, "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return abi.Unavailable, "the connection was reset"
	case errors.As(err, &unknown):
		return abi.Unavailable, "its certificate is from an unknown authority"
	case errors.As(err, &wrongName):
		return abi.Unavailable, "its certificate is for another host"
	case errors.As(err, &invalid), errors.As(err, &certificate):
		return abi.Unavailable, "its certificate is not valid"
	case errors.As(err, &alert), errors.As(err, &record):
		return abi.Unavailable, "no TLS connection"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return abi.Unavailable, "the answer's compression is damaged"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return abi.Unavailable, "the answer broke off"
	case strings.Contains(err.Error(), "malformed"):
		return abi.Unavailable, "the answer is not HTTP"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, errTime):
		return abi.Unavailable, "no connection in time"
	}
	return abi.Unavailable, "no connection, or one that failed"
}

// innermost returns the error at the end of the chain: one of ours, when it is
// known that one of ours is in it.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
