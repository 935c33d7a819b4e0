package command

import "errors"

// Code is an exit code.
type Code int

// The exit codes.
const (
	Done Code = iota
	Failed
	Usage
	Partial
)

// Codes returns all of them, in order.
func Codes() []Code { return []Code{Done, Failed, Usage, Partial} }

// Means says what a code means.
func (c Code) Means() string {
	return map[Code]string{
		Done:    "done, and nothing is wrong",
		Failed:  "it failed or was refused, its outcome is unknown, or what was looked at is wrong",
		Usage:   "the command line was wrong, and nothing was tried",
		Partial: "nothing that was looked at is wrong, but not all could be looked at, or there are warnings",
	}[c]
}

// String is the code of an error that has no other one, in JSON.
func (c Code) String() string {
	return map[Code]string{Done: "Done", Failed: "Failed", Usage: "Usage", Partial: "Partial"}[c]
}

// Error is an error with an exit code.
type Error struct {
	Code Code
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without the code.
func (e *Error) Unwrap() error { return e.Err }

// Wrong returns an error in the command line; nil for nil.
func Wrong(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Usage, err}
}

// Tried returns the error of a command's work: Failed, unless it has a code; nil for nil.
func Tried(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Failed, err}
}

// CodeOf returns the exit code of what a command returned. An error without one is that of the parser of command lines.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return Done
	case errors.As(err, &e):
		return e.Code
	}
	return Usage
}
