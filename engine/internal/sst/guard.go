package sst

import (
	"errors"
	"fmt"
	"io"

	"github.com/merutable/merutable/engine/internal/base"
)

// guard runs fn, which calls into the Parquet library, and makes of its errors and panics an error that names the
// file. Errors of the file system keep their code; what else goes wrong while reading is damage.
func guard(path, doing string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = corrupt(path, doing, panicError(r))
		}
	}()
	if err = fn(); err != nil {
		err = corrupt(path, doing, err)
	}
	return err
}

func corrupt(path, doing string, err error) error {
	var known *base.Error
	if errors.As(err, &known) {
		return base.Wrapf(known.Code, err, "%s: %s", path, doing)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return base.Wrapf(base.CodeCorruption, err, "%s: %s: the file ends early", path, doing)
	}
	return base.Wrapf(base.CodeCorruption, err, "%s: %s", path, doing)
}

func panicError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return errors.New(fmt.Sprint(r))
}

// guardWrite is guard for the writing side, where what goes wrong beside the file system is the library's.
func guardWrite(path string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			cause := panicError(r)
			err = base.Wrapf(codeOr(cause, base.CodeParquet), cause, "%s: writing", path)
		}
	}()
	if err = fn(); err != nil {
		err = base.Wrapf(codeOr(err, base.CodeParquet), err, "%s: writing", path)
	}
	return err
}

// codeOr returns the code of the innermost of our errors in the chain, or def where there is none. The library wraps
// the file system's errors, some of them as text only.
func codeOr(err error, def base.Code) base.Code {
	var known *base.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return def
}
