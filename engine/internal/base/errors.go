package base

import (
	"errors"
	"fmt"
)

// Code is the kind of an error: branch on it, not on the text. The values are those of the C ABI's MeruStatus.
type Code int

// The codes. They are never renumbered.
const (
	CodeOK              Code = 0
	CodeIO              Code = 1
	CodeCorruption      Code = 2
	CodeSchemaMismatch  Code = 3
	CodeNotFound        Code = 4
	CodeInvalidArgument Code = 5
	CodeReadOnly        Code = 6
	CodeClosed          Code = 7
	CodeObjectStore     Code = 8
	CodeParquet         Code = 9
	CodeAlreadyExists   Code = 10
	CodeLocked          Code = 11
	CodeConflict        Code = 12
	CodeNoSpace         Code = 13
	CodeCancelled       Code = 14
	CodeTimeout         Code = 15
	CodeUnsupported     Code = 16
	CodeUnknown         Code = 99
)

// Error is an error with a code. Message says what was wrong and where (path, column, offset, limit).
type Error struct {
	Code    Code
	Message string
	Cause   error
}

// Error returns the message and the cause's.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, &Error{Code: c}) match by code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == "" && t.Cause == nil
}

// Errorf makes an Error of the given code.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrapf makes an Error of the given code around a cause; nil stays nil.
func Wrapf(code Code, cause error, format string, args ...any) error {
	if cause == nil {
		return nil
	}
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// CodeOf returns the code of the outermost Error in err's chain, CodeUnknown where there is none, CodeOK for nil.
func CodeOf(err error) Code {
	if err == nil {
		return CodeOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeUnknown
}
