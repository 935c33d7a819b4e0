//go:build !linux

package seglog

import "os"

// Only Linux has O_DIRECT in a form that was tried.
const osDirect = false

func openDirect(string) (*os.File, error) { return nil, errNoDirect }

func writeDirect(*os.File, []byte, int64) error { return errNoDirect }
