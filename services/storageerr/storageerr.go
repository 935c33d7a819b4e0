// Package storageerr is the one table of error codes: status, code and message
// as the public REST reference words them. Lower packages return a Row (or a
// Row with details); api turns it into an answer in one function.
package storageerr

import (
	"errors"
	"strconv"

	"antipode/stamp/kv"
)

// Row is one error of the protocol. Rows are compared by identity of their
// fields, so errors.Is works on wrapped rows.
type Row struct {
	Status  int
	Code    string
	Message string
}

// Error makes a Row an error.
func (r Row) Error() string { return r.Code + ": " + r.Message }

// Detail is one extra element of an XML error body, such as HeaderName.
type Detail struct{ Name, Value string }

// Error is a Row with what the answer needs beyond it.
type Error struct {
	Row
	// Details are written after Message in XML bodies, in order.
	Details []Detail
}

// Unwrap lets errors.Is find the Row.
func (e *Error) Unwrap() error { return e.Row }

// With returns the row with details given as name, value pairs.
func (r Row) With(pairs ...string) *Error {
	e := &Error{Row: r}
	for i := 0; i+1 < len(pairs); i += 2 {
		e.Details = append(e.Details, Detail{pairs[i], pairs[i+1]})
	}
	return e
}

// Saying returns the row with another message, for rows whose text contains a value of the
// request.
func (r Row) Saying(message string) Row {
	r.Message = message
	return r
}

// CopySourceRefused is the error of a copy whose source was refused with a status, a code, which may be empty, and a
// message (protocol/blob.md 13.6). A refusal for good has the status of the source, and so has 503, after which a
// client tries again. If a client could do nothing about it, the status is that of CannotVerifyCopySource.
func CopySourceRefused(status int, code, message string) *Error {
	r := CannotVerifyCopySource
	if status >= 400 && status < 500 || status == 503 {
		r.Status = status
	}
	if message != "" {
		r.Message = message
	}
	e := r.With("CopySourceStatusCode", strconv.Itoa(status))
	if code != "" {
		e.Details = append(e.Details, Detail{"CopySourceErrorCode", code})
	}
	if message != "" {
		e.Details = append(e.Details, Detail{"CopySourceErrorMessage", message})
	}
	return e
}

// Of finds the protocol error in err's chain, or the row for the error that a range answers in
// place of a command. ok is false if there is no such row: the error is ours and answers
// InternalError.
func Of(err error) (e *Error, ok bool) {
	if errors.As(err, &e) {
		return e, true
	}
	var r Row
	if errors.As(err, &r) {
		return &Error{Row: r}, true
	}
	switch {
	case errors.Is(err, kv.ErrUnknown):
		return &Error{Row: OperationTimedOut}, true
	case errors.Is(err, kv.ErrBusy):
		return &Error{Row: ServerBusy}, true
	}
	return nil, false
}
